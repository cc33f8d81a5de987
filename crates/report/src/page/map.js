// The map: every strip drawn to scale, in rows, with a set of canvases for each vector.
//
// Rows are grouped into bands with one canvas each, because browsers limit the size of a canvas. If there are very many
// bands, those far out of view are released.

const LABEL_HEIGHT = 17;
const STRIP_HEIGHT = 28;
const ROW_HEIGHT = LABEL_HEIGHT + STRIP_HEIGHT + 9;
const STRIP_GAP = 7;
const MIN_STRIP = 5;
const BAND_ROWS = 20;
// Maximum pixels of all canvases, 4 bytes each. Further bands are drawn when they come near the view.
const EAGER_PIXELS = 48e6;
// The same for the chunks of all pieces, because painting them takes longer than the pixels.
const EAGER_CHUNKS = 20_000;

// Pieces of strips, row after row. A piece is {strip, x, width, from, to}.
function layRows(strips, width, mode, rowBytes) {
  const rows = [];
  let x = 0;
  const place = (piece) => {
    if (rows.length === 0 || (x > 0 && x + piece.width > width + 0.5)) {
      rows.push([]);
      x = 0;
    }
    rows[rows.length - 1].push({ ...piece, x });
    x += piece.width + STRIP_GAP;
  };
  const breakRow = () => {
    x = Infinity;
  };
  for (const strip of strips) {
    if (mode === 'full' && !strip.dedicated) {
      breakRow();
      place({ strip, width, from: 0, to: strip.size });
      breakRow();
    } else if (strip.size <= rowBytes) {
      place({ strip, width: Math.max(MIN_STRIP, (strip.size / rowBytes) * width), from: 0, to: strip.size });
    } else {
      // Longer than a row: continues in the next ones.
      breakRow();
      for (let from = 0; from < strip.size; from += rowBytes) {
        const to = Math.min(strip.size, from + rowBytes);
        place({ strip, width: Math.max(1, ((to - from) / rowBytes) * width), from, to });
      }
    }
  }
  return rows;
}

// Bytes of a full row, equal for the whole page: the largest block, or a sixteenth of a much larger dedicated
// allocation.
function bytesOfRow(models) {
  let largestBlock = 0;
  let largest = 1;
  for (const model of models) {
    for (const vector of model.vectors) {
      for (const strip of vector.strips) {
        largest = Math.max(largest, strip.size);
        if (!strip.dedicated) largestBlock = Math.max(largestBlock, strip.size);
      }
    }
  }
  return largestBlock === 0 ? largest : Math.max(largestBlock, Math.ceil(largest / 16));
}

class Drawing {
  // `events`: hover(chunk, x, y), leave(), pick(chunk), walk(chunk).
  constructor(holder, rowBytes, events) {
    this.holder = holder;
    this.rowBytes = rowBytes;
    this.events = events;
    this.bands = [];
    this.look = null;
    this.observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const band = this.bands.find(({ canvas }) => canvas === entry.target);
        if (band && entry.isIntersecting) this.paintBand(band);
        else if (band) this.dropBand(band);
      }
    }, { rootMargin: '800px' });
  }

  // Creates the layout again, for another snapshot, width or scale.
  show(model, mode, look) {
    this.observer.disconnect();
    this.bands = [];
    this.look = look;
    this.holder.textContent = '';
    // Measured once before any insertion. Reading it later would force a layout for each vector.
    this.width = Math.max(320, Math.floor(this.holder.clientWidth));
    let [pixels, chunks] = [0, 0];
    for (const vector of model.vectors) {
      if (vector.strips.length === 0) continue;
      const rows = layRows(vector.strips, this.width, mode, this.rowBytes);
      const canvases = [];
      for (let first = 0; first < rows.length; first += BAND_ROWS) {
        const band = this.makeBand(rows.slice(first, first + BAND_ROWS), vector);
        canvases.push(band.canvas);
        pixels += this.width * band.rows.length * ROW_HEIGHT;
        for (const strip of band.strips) chunks += strip.chunks.length;
        band.isEager = pixels <= EAGER_PIXELS && chunks <= EAGER_CHUNKS;
        this.bands.push(band);
      }
      this.holder.append(make('article', { class: 'vector' }, vectorHeading(vector), this.makeRows(vector, canvases)));
    }
    for (const band of this.bands) {
      if (!band.isEager) this.observer.observe(band.canvas);
    }
    this.paint(look);
  }

  // One stop for the keyboard, for any number of canvases.
  makeRows(vector, canvases) {
    return make('div', {
      class: 'rows',
      tabindex: 0,
      role: 'application',
      'aria-label': `${vector.place}: arrow keys choose a chunk`,
      onkeydown: (event) => this.enter(event, vector),
    }, canvases);
  }

  // An arrow key without a selection in the vector selects its first allocation, or the first match. The inspector
  // handles the keys from then on.
  enter(event, vector) {
    if (event.ctrlKey || event.metaKey || event.altKey || !['ArrowLeft', 'ArrowRight'].includes(event.key)) return;
    const { selected, isSearching } = this.look;
    if (selected && selected.strip.vector === vector) return;
    const { chunks } = vector;
    const first = chunks.find((chunk) => (isSearching ? chunk.isMatch : chunk.allocation)) || chunks[0];
    if (!first) return;
    event.preventDefault();
    event.stopPropagation();
    this.events.walk(first);
  }

  makeBand(rows, vector) {
    const canvas = make('canvas', {
      role: 'img',
      'aria-label': `${vector.title}: ${count(vector.sums.blocks, 'block')}, ${count(vector.sums.allocations, 'allocation')}, ${bytes(vector.sums.used)} used`,
    });
    canvas.style.width = `${this.width}px`;
    canvas.style.height = `${rows.length * ROW_HEIGHT}px`;
    const band = { canvas, rows, isPainted: false, isEager: true, strips: new Set(rows.flat().map((piece) => piece.strip)) };
    canvas.addEventListener('mousemove', (event) => {
      const chunk = this.chunkAt(band, event.offsetX, event.offsetY);
      canvas.classList.toggle('over', chunk !== null);
      if (chunk) this.events.hover(chunk, event.clientX, event.clientY);
      else this.events.leave();
    });
    canvas.addEventListener('mouseleave', () => this.events.leave());
    canvas.addEventListener('click', (event) => {
      const chunk = this.chunkAt(band, event.offsetX, event.offsetY);
      if (chunk) this.events.pick(chunk);
    });
    return band;
  }

  // Repaints for another colour, search or selection. Only `strips`, if they are given.
  paint(look, strips) {
    this.look = look;
    for (const band of this.bands) {
      if (!(band.isEager || band.isPainted)) continue;
      if (!strips || strips.some((strip) => band.strips.has(strip))) this.paintBand(band);
    }
  }

  paintBand(band) {
    const context = sizeCanvas(band.canvas, this.width, band.rows.length * ROW_HEIGHT);
    const { palette } = this.look;
    band.isPainted = true;
    band.rows.forEach((row, at) => {
      const top = at * ROW_HEIGHT;
      for (const piece of row) {
        paintStrip(context, piece.strip, piece.from, piece.to, piece.x, top + LABEL_HEIGHT, piece.width, STRIP_HEIGHT, this.look);
        if (piece.width < 30) continue;
        context.font = LABEL_FONT;
        context.textBaseline = 'alphabetic';
        context.fillStyle = palette.soft;
        context.fillText(pieceLabel(context, piece), piece.x, top + LABEL_HEIGHT - 5);
      }
    });
  }

  dropBand(band) {
    band.isPainted = false;
    band.canvas.width = 1;
    band.canvas.height = 1;
  }

  chunkAt(band, x, y) {
    const row = band.rows[Math.floor(y / ROW_HEIGHT)];
    const inRow = y % ROW_HEIGHT;
    if (!row || inRow < LABEL_HEIGHT - 3 || inRow > LABEL_HEIGHT + STRIP_HEIGHT + 3) return null;
    const piece = row.find((candidate) => x >= candidate.x - 1 && x <= candidate.x + candidate.width + 1);
    if (!piece) return null;
    const perPixel = (piece.to - piece.from) / piece.width;
    const byte = piece.from + Math.min(Math.max((x - piece.x) * perPixel, 0), piece.to - piece.from - 1);
    return nearest(piece.strip, byte, perPixel * 3, this.look.isSearching);
  }

  // The position of a chunk for scrolling: its canvas, and the pixels from its top.
  find(chunk) {
    for (const band of this.bands) {
      if (!band.strips.has(chunk.strip)) continue;
      const row = band.rows.findIndex((pieces) =>
        pieces.some(({ strip, from, to }) => strip === chunk.strip && chunk.offset >= from && chunk.offset < to));
      if (row >= 0) return { canvas: band.canvas, top: row * ROW_HEIGHT };
    }
    return null;
  }

  // Everything at any distance, for printing.
  paintAll() {
    for (const band of this.bands) if (!band.isPainted) this.paintBand(band);
  }
}

// The chunk at a byte. During a search, a thin match near the pointer takes precedence.
function nearest(strip, byte, reach, isSearching) {
  const at = strip.indexAt(byte);
  // A block with a known size and no chunks.
  if (strip.chunks.length === 0) return null;
  if (!isSearching || strip.chunks[at].isMatch) return strip.chunks[at];
  for (let near = strip.indexAt(Math.max(0, byte - reach)); near < strip.chunks.length; near += 1) {
    const chunk = strip.chunks[near];
    if (chunk.offset > byte + reach) break;
    if (chunk.isMatch) return chunk;
  }
  return strip.chunks[at];
}

// The longest label that fits above a piece of a strip.
function pieceLabel(context, piece) {
  return labelsFor(piece).find((label) => context.measureText(label).width <= piece.width) || '';
}

// The longest first.
function labelsFor({ strip, from }) {
  const size = bytes(strip.size);
  const full = `${strip.title}  ·  ${size}`;
  if (from > 0) return [`…  ${full}, from ${bytes(from)} on`, `…  from ${bytes(from)} on`];
  if (strip.dedicated) return [full, size];
  return [`${full}  ·  ${percent(strip.used / strip.size)} used${strip.mapCount > 0 ? '  ·  mapped' : ''}`, full, size];
}

function flagList(flags) {
  return make('span', { class: 'flags' }, flags.length === 0
    ? make('span', { class: 'flag none' }, 'no flags')
    : flags.map((flag) => make('span', { class: 'flag' }, flag)));
}

function vectorHeading(vector) {
  const { sums } = vector;
  const facts = [`heap ${vector.heap}`];
  if (vector.isPool) facts.unshift(`memory type ${vector.memoryType}`);
  if (vector.algorithm) facts.push(vector.algorithm);
  if (vector.blockSize > 0) facts.push(`blocks of up to ${bytes(vector.blockSize)}`);
  return make('header', {},
    make('h3', {}, vector.isPool ? 'Pool ' : vector.title, vector.isPool ? given(vector.poolName || String(vector.pool)) : null),
    flagList(vector.flags),
    make('span', { class: 'aside' }, facts.join('  ·  ')),
    make('span', { class: 'sums' },
      make('b', {}, bytes(sums.used)), ` of ${bytes(sums.reserved)}`,
      `  ·  ${count(sums.blocks - sums.dedicated, 'block')}${sums.dedicated ? `, ${exact(sums.dedicated)} dedicated` : ''}`,
      sums.free > 0 ? `  ·  ${percent(vector.figures.scatter)} scattered` : null));
}
