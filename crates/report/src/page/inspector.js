// The inspector: the selected chunk, and its block at any magnification.

const DETAIL_HEIGHT = 64;
const OVERVIEW_HEIGHT = 14;

class Inspector {
  // `events`: hover(chunk, x, y), leave(), pick(chunk), walk(chunk), close(). `history`: the recording, if any.
  constructor(element, events, history) {
    this.history = history;
    this.element = element;
    this.events = events;
    this.chunk = null;
    this.from = 0;
    this.to = 1;
    this.facts = make('div', { class: 'facts', 'aria-live': 'polite' });
    this.detail = make('canvas', { tabindex: 0, role: 'img', class: 'magnified' });
    this.overview = make('canvas', { class: 'overview', 'aria-hidden': 'true' });
    this.range = make('span', { class: 'range' });
    const button = (text, title, action) => make('button', { type: 'button', title, 'aria-label': title, onclick: action }, text);
    this.title = make('span', { class: 'where' });
    element.append(
      make('div', { class: 'inner' },
        this.facts,
        make('div', { class: 'zoom' },
          make('div', { class: 'controls' },
            this.title, this.range,
            make('span', { class: 'buttons' },
              button('◀', 'Previous chunk', () => this.step(-1)),
              button('▶', 'Next chunk', () => this.step(1)),
              button('−', 'Zoom out', () => this.zoom(2)),
              button('+', 'Zoom in', () => this.zoom(0.5)),
              button('Chunk', 'Zoom to the chosen chunk', () => this.fit()),
              button('Block', 'Show the whole block', () => this.whole()),
              button('×', 'Close', () => this.events.close()))),
          this.overview, this.detail)));
    this.listen();
  }

  listen() {
    const { detail, overview } = this;
    const chunkAt = (event) => {
      const perPixel = (this.to - this.from) / this.width;
      const byte = Math.min(Math.max(this.from + event.offsetX * perPixel, 0), this.chunk.strip.size - 1);
      return nearest(this.chunk.strip, byte, perPixel * 3, this.look.isSearching);
    };
    let drag = null;
    detail.addEventListener('wheel', (event) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX / this.width) * (this.to - this.from));
      else this.zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX / this.width);
    }, { passive: false });
    detail.addEventListener('pointerdown', (event) => {
      drag = { x: event.clientX, from: this.from, hasMoved: false };
      detail.setPointerCapture(event.pointerId);
    });
    detail.addEventListener('pointermove', (event) => {
      if (drag && Math.abs(event.clientX - drag.x) > 3) drag.hasMoved = true;
      if (drag && drag.hasMoved) {
        this.events.leave();
        const span = this.to - this.from;
        this.window(drag.from - ((event.clientX - drag.x) / this.width) * span, span);
      } else {
        this.events.hover(chunkAt(event), event.clientX, event.clientY);
      }
    });
    detail.addEventListener('pointerup', (event) => {
      const isClick = drag && !drag.hasMoved;
      drag = null;
      if (isClick) this.events.pick(chunkAt(event));
    });
    detail.addEventListener('pointerleave', () => this.events.leave());
    const jump = (event) => {
      const span = this.to - this.from;
      this.window((event.offsetX / this.width) * this.chunk.strip.size - span / 2, span);
    };
    overview.addEventListener('pointerdown', (event) => {
      overview.setPointerCapture(event.pointerId);
      jump(event);
    });
    overview.addEventListener('pointermove', (event) => {
      if (event.buttons === 1) jump(event);
    });
  }

  get isOpen() {
    return this.chunk !== null;
  }

  // Shows a chunk. Keeps the window if the chunk is inside it.
  show(chunk, look) {
    const isOther = !this.chunk || this.chunk.strip !== chunk.strip;
    this.chunk = chunk;
    this.look = look;
    this.element.hidden = false;
    this.facts.textContent = '';
    this.facts.append(
      make('p', { class: 'title' }, headingOf(chunk), chunk.allocation ? make('span', { class: 'kind' }, chunk.allocation.kind) : null),
      factList([...factsOf(chunk, true), ...(this.history ? this.history.factsOf(chunk) : [])]));
    this.title.textContent = `${chunk.strip.title}, ${chunk.strip.vector.place}`;
    if (isOther) {
      this.from = 0;
      this.to = chunk.strip.size;
      // A block with very many chunks starts near the selected one.
      if (chunk.strip.chunks.length > 200) this.around(chunk, chunk.size * 24);
    } else if (chunk.offset < this.from || chunk.end > this.to) {
      this.around(chunk, Math.max(this.to - this.from, chunk.size * 1.5));
    }
    this.paint();
  }

  hide() {
    this.chunk = null;
    this.element.hidden = true;
  }

  around(chunk, span) {
    this.frame(chunk.offset + chunk.size / 2 - span / 2, span);
  }

  // Sets the window, within the block and never below 16 bytes.
  frame(from, span) {
    const { size } = this.chunk.strip;
    const room = Math.min(size, Math.max(span, Math.min(size, 16)));
    this.from = Math.min(Math.max(0, from), size - room);
    this.to = this.from + room;
  }

  // Sets the window, and shows its contents.
  window(from, span) {
    this.frame(from, span);
    this.paint();
  }

  zoom(factor, at) {
    const span = this.to - this.from;
    const place = at === undefined ? this.anchor() : at;
    const wanted = span * factor;
    this.window(this.from + (span - wanted) * place, wanted);
  }

  // The fixed point of a zoom by key or button: the selected chunk, if it is visible.
  anchor() {
    const middle = (this.chunk.offset + this.chunk.size / 2 - this.from) / (this.to - this.from);
    return middle >= 0 && middle <= 1 ? middle : 0.5;
  }

  pan(distance) {
    this.window(this.from + distance, this.to - this.from);
  }

  fit() {
    this.around(this.chunk, this.chunk.size * 1.5);
    this.paint();
  }

  whole() {
    this.window(0, this.chunk.strip.size);
  }

  // To a neighbour, across the ends of blocks.
  step(by) {
    const { chunks } = this.chunk.strip.vector;
    const next = chunks[chunks.indexOf(this.chunk) + by];
    if (next) this.events.walk(next);
  }

  // Returns true if the key was handled.
  key(key) {
    const actions = {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      '+': () => this.zoom(0.5),
      '=': () => this.zoom(0.5),
      '-': () => this.zoom(2),
      0: () => this.whole(),
    };
    if (!actions[key]) return false;
    actions[key]();
    return true;
  }

  paint() {
    if (!this.chunk) return;
    const { strip } = this.chunk;
    const { palette } = this.look;
    this.width = Math.floor(this.detail.parentElement.clientWidth);
    const above = sizeCanvas(this.overview, this.width, OVERVIEW_HEIGHT);
    paintStrip(above, strip, 0, strip.size, 0, 0, this.width, OVERVIEW_HEIGHT, { ...this.look, selected: null });
    const left = (this.from / strip.size) * this.width;
    const room = Math.max(((this.to - this.from) / strip.size) * this.width, 3);
    above.strokeStyle = palette.ink;
    above.lineWidth = 2;
    above.strokeRect(left + 1, 1, room - 2, OVERVIEW_HEIGHT - 2);
    const context = sizeCanvas(this.detail, this.width, DETAIL_HEIGHT);
    paintStrip(context, strip, this.from, this.to, 0, 2, this.width, DETAIL_HEIGHT - 4, this.look);
    const share = this.to - this.from === strip.size ? '' : `  (${percent((this.to - this.from) / strip.size)} of it)`;
    this.range.textContent = `${exact(Math.round(this.from))} – ${exact(Math.round(this.to))}${share}`;
    this.detail.setAttribute('aria-label', `${strip.title}, magnified. Arrow keys choose the next chunk, plus and minus zoom.`);
  }
}
