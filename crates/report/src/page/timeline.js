// The timeline: the graph, and the selection of one moment or two.

class Timeline {
  // `changed()` is called after each change of the selection.
  constructor(history, palette, changed) {
    this.history = history;
    this.changed = changed;
    this.selection = { before: null, now: history.peak };
    this.area = byId('graph');
    this.graph = new Graph(this.area, history, palette);
    byId('timeline').hidden = false;
    this.listen();
    this.describe();
  }

  // Shows a newer state of the recording, or the end of another one. Returns true if the selection is its end.
  setHistory(history, isOther) {
    const { graph, selection } = this;
    const old = this.history;
    const follows = isOther || (selection.before === null && selection.now === old.last);
    const wasAll = isOther || (graph.from === 0 && graph.to >= graph.values[old.last]);
    const [from, span] = [graph.from, graph.to - graph.from];
    const moved = (moment) => (moment === null ? null : lastUpTo(history.call, old.call[moment]));
    this.history = history;
    this.selection = follows ? { before: null, now: history.last } : { before: moved(selection.before), now: moved(selection.now) };
    graph.setHistory(history);
    if (!wasAll) graph.window(from, span);
    this.describe();
    this.showMarks();
    this.paint();
    return follows;
  }

  listen() {
    const { area } = this;
    let start = null;
    const momentAt = (event) => {
      const { left, width } = area.getBoundingClientRect();
      return this.graph.momentAt((event.clientX - left) / width);
    };
    area.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      area.setPointerCapture(event.pointerId);
      area.focus({ preventScroll: true });
      start = { x: event.clientX, moment: momentAt(event) };
      this.select(null, start.moment);
    });
    area.addEventListener('pointermove', (event) => {
      if (start === null || Math.abs(event.clientX - start.x) < 4) return;
      this.select(start.moment, momentAt(event));
    });
    for (const name of ['pointerup', 'pointercancel']) area.addEventListener(name, () => { start = null; });
    area.addEventListener('keydown', (event) => this.key(event));
    for (const input of document.querySelectorAll('#timeline input[name=axis]')) {
      input.addEventListener('change', () => {
        this.graph.setAxis(input.value);
        this.paint();
      });
    }
    const actions = {
      'select-peak': () => this.select(null, this.history.peak),
      'select-end': () => this.select(null, this.history.last),
      'select-one': () => this.select(null, this.selection.now),
      'zoom-in': () => this.zoom(0.5),
      'zoom-out': () => this.zoom(2),
      'zoom-all': () => this.zoom(Infinity),
    };
    for (const [id, action] of Object.entries(actions)) byId(id).addEventListener('click', action);
  }

  // Selects one moment, or two in the order of time.
  select(before, now) {
    const isPair = before !== null && before !== now;
    this.selection = isPair ? { before: Math.min(before, now), now: Math.max(before, now) } : { before: null, now };
    this.anchor = isPair ? before : null;
    this.paint();
    this.describe();
    this.changed();
  }

  zoom(factor) {
    const { graph, selection } = this;
    if (factor === Infinity) graph.showAll();
    else graph.zoom(factor, graph.values[selection.now]);
    this.paint();
  }

  paint() {
    this.graph.paint(this.selection);
  }

  // The moment that a key leads to; null for other keys.
  target(key, from) {
    const { history } = this;
    const starts = history.frames.moment;
    const leap = Math.max(1, Math.round(history.last / 20));
    const frame = lastUpTo(starts, from);
    const targets = {
      ArrowLeft: from - 1,
      ArrowRight: from + 1,
      Home: 0,
      End: history.last,
      PageUp: starts.length === 0 ? from - leap : starts[frame] < from ? starts[frame] : starts[Math.max(0, frame - 1)],
      PageDown: starts.length === 0 ? from + leap : starts[0] > from ? starts[0] : starts[Math.min(starts.length - 1, frame + 1)],
    };
    return key in targets ? Math.min(Math.max(0, targets[key]), history.last) : null;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { selection, anchor } = this;
    const zooms = { '+': 0.5, '=': 0.5, '-': 2, 0: Infinity };
    // The end of a pair that moves is the one away from its anchor.
    const moving = selection.before !== null && anchor === selection.now ? selection.before : selection.now;
    const target = this.target(event.key, moving);
    if (target !== null) {
      this.select(event.shiftKey ? (selection.before === null ? selection.now : anchor) : null, target);
      this.graph.reveal(target);
      this.paint();
    } else if (event.key in zooms) {
      this.zoom(zooms[event.key]);
    } else if (event.key === 'Escape' && selection.before !== null) {
      this.select(null, selection.now);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  // "1.25 s, frame 12, call 3,456". Programs that present nothing have submissions instead of frames.
  nameOf(moment) {
    const { history } = this;
    const frame = history.frameAt(moment);
    return `${duration(history.time[moment])}${frame === null ? '' : `, ${this.frameWord} ${exact(frame)}`}, call ${exact(history.call[moment])}`;
  }

  get frameWord() {
    return this.history.raw.has_submissions ? 'submission' : 'frame';
  }

  describe() {
    const { before, now } = this.selection;
    const text = before === null ? `At ${this.nameOf(now)}` : `From ${this.nameOf(before)}, to ${this.nameOf(now)}`;
    byId('moment').textContent = `${text} of ${exact(this.history.calls)}`;
    byId('select-one').hidden = before === null;
    this.area.setAttribute('aria-valuemax', String(this.history.last));
    this.area.setAttribute('aria-valuenow', String(now));
    this.area.setAttribute('aria-valuetext', text);
  }

  // Shows bursts as buttons, and as notes: the marks below the graph, failures, and what is left out.
  showMarks() {
    const { raw } = this.history;
    const list = byId('bursts');
    list.textContent = '';
    if (raw.bursts.length > 0) list.append(make('span', { class: 'label' }, 'Bursts'));
    for (const burst of raw.bursts) {
      const select = () => {
        this.select(burst.from, burst.to);
        this.graph.reveal(burst.to);
        this.paint();
      };
      list.append(make('button', { type: 'button', class: 'burst', onclick: select },
        `${duration(this.history.time[burst.to])}: ${count(burst.allocations, 'allocation')}, ${bytes(burst.bytes)}`));
    }
    const notes = [];
    const marks = [
      raw.frames.number.length > 0 && `a tick is a ${this.frameWord}`,
      raw.bursts.length > 0 && 'a bar is a burst: many more allocations than usual',
    ].filter(Boolean);
    if (marks.length > 0) notes.push(`Below the graph, ${marks.join(', and ')}.`);
    if (raw.failures.length > 0) notes.push(`${count(raw.failures.length, 'request')} failed, marked ×.`);
    if (raw.left_out) {
      const { placed, memories, lived } = raw.left_out;
      const lacks = [[placed, 'allocation'], [memories, 'memory object']].filter(([number]) => number > 0);
      notes.push(`The recording is large: the map lacks ${lacks.map(([number, one]) => count(number, one)).join(' and ')} that were live for at most ${duration(lived)}. `
        + 'The graph includes their bytes.');
    }
    byId('timeline-note').textContent = notes.join(' ');
    byId('timeline-note').hidden = notes.length === 0;
  }
}
