// Painting: a range of a strip onto a canvas. The map and the inspector both use it.

const LABEL_FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';
// Narrower chunks have no gap to the next one. Otherwise only gaps would be visible.
const GAP_FROM = 3;
// Narrower or lower chunks have no name inside.
const LABEL_FROM = 46;
const LABEL_HEIGHT_FROM = 20;

// A canvas of `width` by `height` CSS pixels, sharp on every display.
function sizeCanvas(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// Free memory is hatched, to distinguish it from the colours.
function hatching(context, palette) {
  const tile = document.createElement('canvas');
  tile.width = 6;
  tile.height = 6;
  const pen = tile.getContext('2d');
  pen.fillStyle = palette.free;
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = palette.hatch;
  pen.lineWidth = 1;
  pen.beginPath();
  for (const shift of [-6, 0, 6]) {
    pen.moveTo(shift - 1, 7);
    pen.lineTo(shift + 7, -1);
  }
  pen.stroke();
  return context.createPattern(tile, 'repeat');
}

// The part of a text that fits, with an ellipsis if it is cut.
function fitted(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let low = 0;
  let high = Math.min(text.length, 80);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low < 2 ? '' : `${text.slice(0, low)}…`;
}

// Paints the bytes `from..to` of a strip into the rectangle x, y, width, height.
// `look`: palette, colour ('role', 'kind' or 'name'), isSearching, compares, selected.
function paintStrip(context, strip, from, to, x, y, width, height, look) {
  const { palette } = look;
  const scale = width / (to - from);
  if (!look.hatch) look.hatch = hatching(context, palette);
  context.fillStyle = look.hatch;
  context.fillRect(x, y, width, height);

  const marks = [];
  const labels = [];
  let chosen = null;
  let colour = null;
  for (let at = strip.indexAt(from); at < strip.chunks.length; at += 1) {
    const chunk = strip.chunks[at];
    if (chunk.offset >= to) break;
    const left = x + Math.max(0, (chunk.offset - from) * scale);
    const right = x + Math.min(width, (chunk.end - from) * scale);
    const room = right - left;
    if (chunk === look.selected) chosen = [left, room];
    if (!chunk.allocation) {
      if (look.isSearching && chunk.isMatch) marks.push([left, room]);
      continue;
    }
    const isFaded = look.isSearching && !chunk.isMatch;
    const full = palette.of(chunk.allocation, look.colour);
    const fill = isFaded ? palette.faded(full) : full;
    // Setting a colour is slower than painting with it.
    if (fill !== colour) {
      context.fillStyle = fill;
      colour = fill;
    }
    // Search matches that are too small to see are enlarged.
    const shown = look.isSearching && chunk.isMatch ? Math.max(room, 1.5) : room;
    context.fillRect(left, y, shown >= GAP_FROM ? shown - 1 : shown, height);
    if (look.compares && (chunk.isOnlyHere || chunk.isMoved) && !isFaded) marks.push([left, room]);
    if (room >= LABEL_FROM && height >= LABEL_HEIGHT_FROM && !isFaded) labels.push([left, room, chunk, fill]);
  }

  context.strokeStyle = palette.mark;
  context.fillStyle = palette.mark;
  for (const [left, room] of marks) {
    if (room >= 6) {
      context.lineWidth = 1.5;
      context.strokeRect(left + 0.75, y + 0.75, room - 2.5, height - 1.5);
    } else {
      context.fillRect(left, y, Math.max(room, 1.5), 4);
    }
  }
  context.font = LABEL_FONT;
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  for (const [left, room, chunk, fill] of labels) {
    const text = chunk.name ? printable(chunk.name) : bytes(chunk.size);
    context.fillStyle = palette.inkFor(fill);
    context.fillText(fitted(context, text, room - 12), left + 6, y + height / 2 + 0.5);
  }
  context.lineWidth = 1;
  context.strokeStyle = palette.edge;
  context.strokeRect(x + 0.5, y + 0.5, Math.max(width - 1, 1), height - 1);
  if (chosen) {
    context.lineWidth = 2;
    context.strokeStyle = palette.ink;
    context.strokeRect(chosen[0], y - 1, Math.max(chosen[1] - 1, 2), height + 2);
  }
}
