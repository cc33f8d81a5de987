// The page: reads the data, shows it, and handles input.

// The user's selections.
const state = { snapshot: 'now', colour: 'role', scale: 'scaled', query: '', selected: null };

function figure(id, label, value, detail, change) {
  return make('div', { class: 'figure', id },
    make('span', { class: 'label' }, label),
    make('span', { class: 'value' }, value),
    make('span', { class: 'detail' }, detail),
    change ? make('span', { class: 'since' }, change) : null);
}

function showSummary(model, before) {
  const { total, figures } = model;
  const past = before ? before.total : null;
  const since = (key) => (past ? `was ${bytes(past[key])}` : null);
  const sinceCount = (key) => (past ? `was ${exact(past[key])}` : null);
  byId('summary').textContent = '';
  byId('summary').append(
    figure('figure-reserved', 'Reserved', bytes(total.reserved), `${exact(total.reserved)} bytes`, since('reserved')),
    figure('figure-used', 'Used', bytes(total.used), `${exact(total.used)} bytes`, since('used')),
    figure('figure-free', 'Free', bytes(total.free), `${exact(total.free)} bytes`, since('free')),
    figure('figure-largest-free', 'Largest free range', bytes(total.largestFree), `${exact(total.largestFree)} bytes`, since('largestFree')),
    figure('figure-allocations', 'Allocations', exact(total.allocations), `${exact(total.dedicated)} dedicated`, sinceCount('allocations')),
    figure('figure-blocks', 'Blocks', exact(total.blocks), 'of VkDeviceMemory', sinceCount('blocks')),
    figure('figure-scatter', 'Free, scattered', percent(figures.scatter), `${count(total.freeRanges, 'free range')}`,
      before ? `was ${percent(before.figures.scatter)}` : null),
    // A recording has no estimate of what defragmentation frees.
    figures.removable_bytes === undefined
      ? figure('figure-empty', 'Empty blocks', bytes(figures.empty_bytes), `in ${count(figures.empty_blocks, 'block')}`,
        before ? `was ${bytes(before.figures.empty_bytes)}` : null)
      : figure('figure-removable', 'Defragmentation', bytes(figures.removable_bytes), `could free, in ${count(figures.removable_blocks, 'block')}`,
        before ? `was ${bytes(before.figures.removable_bytes)}` : null));
}

function showHeap(heap) {
  const { sums } = heap;
  const scale = Math.max(heap.size, heap.usage, sums.reserved, 1);
  const part = (className, size) => {
    const element = make('span', { class: className });
    element.style.width = `${(size / scale) * 100}%`;
    return element;
  };
  const mark = make('span', { class: 'budget' });
  // Some drivers report a budget that is larger than the heap.
  mark.style.left = `${Math.min(heap.budget / scale, 1) * 100}%`;
  const term = (className, label, size) => make('span', { class: `term ${className}`, data: { value: String(size) }, title: `${exact(size)} bytes` },
    make('span', { class: 'swatch' }), `${label} `, make('b', {}, bytes(size)));
  const isOver = heap.usage > heap.budget;
  return make('div', { class: isOver ? 'heap over' : 'heap', id: `heap-${heap.index}` },
    make('div', { class: 'head' }, make('h3', {}, `Heap ${heap.index}`), flagList(heap.flags),
      isOver ? make('span', { class: 'warning' }, 'over budget') : null),
    make('div', { class: 'gauge' }, part('usage', heap.usage), part('reserved', sums.reserved), part('used', sums.used), mark),
    make('div', { class: 'terms' },
      term('size', 'size', heap.size), term('budget', 'budget', heap.budget), term('usage', 'process', heap.usage),
      term('reserved', 'blocks', sums.reserved), term('used', 'used', sums.used)));
}

// The query that finds the contents of one place.
function queryFor(field, text) {
  if (text === null) return field === 'name' ? 'is:unnamed' : 'is:no-caller';
  return `${field}:"${text.replace(/"/g, '""')}"`;
}

// Each colour is a button that searches for its chunks.
function showLegend(model, palette, look, searchFor) {
  const legend = byId('legend');
  legend.textContent = '';
  const key = (colour, label, query, className = '') => {
    const swatch = make('span', { class: 'swatch' });
    if (colour) swatch.style.background = colour;
    return make('button', { type: 'button', class: `key ${className}`, onclick: () => searchFor(query) }, swatch, label);
  };
  if (state.colour === 'role') {
    const roles = new Set(model.allocations.map((chunk) => roleOf(chunk.allocation)));
    for (const [role, label] of Object.entries(ROLES)) if (roles.has(role)) legend.append(key(palette.roles[role], label, `role:"${role}"`));
  } else if (state.colour === 'kind') {
    const kinds = new Set(model.allocations.map((chunk) => chunk.allocation.kind));
    for (const [kind, label] of Object.entries(KINDS)) if (kinds.has(kind)) legend.append(key(palette.byKind(kind), label, `kind:${kind}`));
  } else {
    const sums = sumsBy(model.allocations, (chunk) => chunk.name || null);
    const shown = sums.slice(0, 14);
    for (const sum of shown) legend.append(key(palette.byName(sum.key), sum.key ? given(sum.key) : 'unnamed', queryFor('name', sum.key)));
    if (sums.length > shown.length) legend.append(make('span', { class: 'aside' }, `and ${count(sums.length - shown.length, 'more name')}`));
  }
  legend.append(key(null, 'Free', 'is:free', 'free'));
  if (look.compares) legend.append(state.snapshot === 'now' ? key(null, 'New', 'is:new', 'outlined') : key(null, 'Gone since', 'is:gone', 'outlined'));
}

// Shown if the data cannot be read. An empty page would look like an empty allocator.
function fail(message) {
  byId('failure').textContent = message;
  byId('failure').hidden = false;
  byId('page').hidden = true;
  document.documentElement.dataset.state = 'failed';
}

class Page {
  constructor(data) {
    this.data = data;
    this.palette = new Palette();
    this.tooltip = new Tooltip(byId('tooltip'));
    const events = {
      hover: (chunk, x, y) => this.tooltip.show(chunk, x, y, this.noteOn(chunk)),
      leave: () => this.tooltip.hide(),
      pick: (chunk) => this.select(chunk),
      walk: (chunk) => this.pickFrom(chunk, state.snapshot),
      close: () => this.select(null),
    };
    this.history = data.history ? new History(data.history) : null;
    if (this.history) this.timeline = new Timeline(this.history, this.palette, () => this.schedule());
    this.setModels();
    const rowBytes = this.history ? this.history.rowBytes : bytesOfRow(Object.values(this.models).filter(Boolean));
    this.drawing = new Drawing(byId('vectors'), rowBytes, events);
    this.inspector = new Inspector(byId('inspector'), events, this.history);
    this.matches = null;
    // The pending change of the moment, and the milliseconds that the last one took.
    this.timer = null;
    this.cost = 0;
  }

  // The snapshots that are shown: those of the page, or the selected moments of its recording.
  setModels() {
    const { data, history } = this;
    if (!history) {
      this.shown = data;
      this.models = { now: new Model(data.now, data.figures), before: data.before ? new Model(data.before, data.figures_before) : null };
      if (this.models.before) markDifferences(this.models.before, this.models.now, data.comparison);
      return;
    }
    const modelAt = (moment) => {
      const snapshot = history.at(moment);
      return { snapshot, model: new Model(snapshot, figuresOf(snapshot)) };
    };
    const { before, now } = this.timeline.selection;
    const [is, was] = [modelAt(now), before === null ? null : modelAt(before)];
    this.shown = { now: is.snapshot, before: was && was.snapshot };
    this.models = { now: is.model, before: was && was.model };
    if (was) markChanges(was.model, is.model);
  }

  get model() {
    return this.models[state.snapshot];
  }

  get look() {
    return {
      palette: this.palette,
      colour: state.colour,
      isSearching: state.query !== '' && this.test !== null,
      compares: this.models.before !== null,
      selected: state.selected,
    };
  }

  noteOn(chunk) {
    if (chunk.isMoved) return state.snapshot === 'now' ? 'Moved: it was at another place before.' : 'Moved: it is at another place now.';
    if (!chunk.isOnlyHere) return null;
    return state.snapshot === 'now' ? 'New: it was not there before.' : 'Gone: it is not there now.';
  }

  start() {
    const { data } = this;
    byId('title').textContent = printable(data.title);
    byId('device').textContent = deviceLine(this.shown.now.device);
    byId('generator').textContent = document.querySelector('meta[name=generator]').content;
    if (this.timeline) {
      this.timeline.showMarks();
      this.showFindings();
      this.timeline.paint();
    }
    this.showSums();
    this.listen();
    this.search();
    this.lay();
  }

  showFindings() {
    // A recording that was not judged has no list.
    if (!this.history.raw.findings) return;
    const isThere = (label) => this.history.objectOf(label, 0) !== null;
    showFindings(this.history.raw.findings, isThere, (label) => this.goTo(label));
  }

  // Shows an object of a finding: at the shown moment if it is there, or else when it begins.
  goTo(label) {
    const { timeline } = this;
    const { now } = timeline.selection;
    const object = this.history.objectOf(label, now);
    if (object === null) return;
    timeline.select(null, object.from <= now && now < object.to ? now : object.from);
    timeline.graph.reveal(timeline.selection.now);
    timeline.paint();
    clearTimeout(this.timer);
    this.timer = null;
    this.searchFor('');
    this.showMoment();
    const chunk = this.model.chunks.find(object.has);
    if (chunk) this.pickFrom(chunk, 'now');
  }

  // Everything that depends on the shown snapshots, except the map.
  showSums() {
    const { now, before } = this.models;
    const { shown } = this;
    showSummary(now, before);
    byId('heaps').textContent = '';
    byId('heaps').append(...now.heaps.map(showHeap));
    if (before && !this.history) {
      const [device, deviceBefore] = [shown.now, shown.before].map((snapshot) => deviceLine(snapshot.device));
      byId('compared').textContent = `compared with ${printable(shown.before.title || 'an earlier snapshot')}`
        + (deviceBefore === device ? '' : `  ·  ${deviceBefore}`);
      byId('compared').hidden = false;
    }
    for (const id of ['comparison', 'snapshot-switch', 'help-compared']) byId(id).hidden = !before;
    if (before) showComparison(before, now, this.history ? 'ids' : shown.comparison.matching, (chunk, which) => this.pickFrom(chunk, which));
    this.showTables();
  }

  // Shows a newer state of a recording that grows, or the end of another recording. A newer state changes the map only if
  // the map shows the end.
  setHistory(raw, isOther) {
    const known = this.history.raw.findings;
    this.history = new History(raw);
    this.drawing.rowBytes = this.history.rowBytes;
    if (this.timeline.setHistory(this.history, isOther)) this.schedule();
    // The list is replaced only for a reason, because one of its buttons may have the focus.
    if (isOther || JSON.stringify(raw.findings) !== JSON.stringify(known)) this.showFindings();
  }

  // Another moment is selected. While the pointer moves, a large map follows with a delay.
  schedule() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = null;
      this.showMoment();
    }, this.cost > 40 ? 120 : 0);
  }

  showMoment() {
    const start = performance.now();
    const selected = state.selected && state.selected.allocation ? state.selected.allocation.number : null;
    this.setModels();
    this.inspector.history = this.history;
    byId('device').textContent = deviceLine(this.shown.now.device);
    if (!this.models.before) this.switchTo('now');
    this.showSums();
    this.select(this.model.allocations.find((chunk) => chunk.allocation.number === selected) || null);
    this.search();
    this.lay();
    this.cost = performance.now() - start;
  }

  showTables() {
    const { now } = this.models;
    const pick = (chunk) => this.pickFrom(chunk, 'now');
    // There are no matches yet, so the columns come from all chunks.
    const columns = columnsFor(Object.values(this.models).filter(Boolean).flatMap((model) => model.allocations));
    this.found = chunkTable('matches', 'Found', [], (chunk) => this.pickFrom(chunk, state.snapshot), null, columns);
    this.found.element.hidden = true;
    const searchFor = (field) => (sum) => this.searchFor(queryFor(field, sum.key));
    const tables = [this.found];
    if (this.data.leaks.length > 0) tables.push(leakTable(this.data.leaks));
    const { descriptor_heaps: slots = [], descriptor_pools: pools = [] } = this.shown.now;
    if (slots.length > 0) tables.push(descriptorHeapTable(slots));
    if (pools.length > 0) tables.push(descriptorPoolTable(pools));
    if (pools.some((owner) => (owner.each || []).length > 0)) tables.push(eachPoolTable(pools));
    tables.push(chunkTable('largest', 'Largest allocations', now.allocations, pick));
    tables.push(sumTable('by-name', 'By name', 'Name', sumsBy(now.allocations, (chunk) => chunk.name || null), 'unnamed', searchFor('name')));
    if (now.allocations.some((chunk) => chunk.allocation.caller)) {
      const sums = sumsBy(now.allocations, (chunk) => chunk.allocation.caller || null);
      tables.push(sumTable('by-caller', 'By caller', 'Caller', sums, 'not known', searchFor('caller')));
    }
    tables.push(vectorTable(now.vectors.filter((vector) => vector.strips.length > 0)));
    byId('tables').textContent = '';
    byId('tables').append(...tables.map((table) => table.element));
  }

  listen() {
    const box = byId('search');
    box.addEventListener('input', () => {
      state.query = box.value;
      this.search();
      this.repaint();
    });
    byId('help-toggle').addEventListener('click', () => {
      const help = byId('search-help');
      help.hidden = !help.hidden;
      byId('help-toggle').setAttribute('aria-expanded', String(!help.hidden));
    });
    for (const input of document.querySelectorAll('#toolbar input[type=radio]')) {
      input.addEventListener('change', () => {
        state[input.name] = input.value;
        if (input.name === 'snapshot') this.turn();
        else if (input.name === 'scale') this.lay();
        else this.recolour();
      });
    }
    document.addEventListener('keydown', (event) => this.key(event));
    const dark = window.matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', () => {
      this.palette.read();
      if (this.timeline) this.timeline.paint();
      this.recolour();
    });
    let width = window.innerWidth;
    let timer = 0;
    window.addEventListener('resize', () => {
      clearTimeout(timer);
      // A change of only the height has no effect.
      timer = setTimeout(() => {
        if (window.innerWidth !== width) {
          if (this.timeline) this.timeline.paint();
          this.lay();
        }
        width = window.innerWidth;
      }, 120);
    });
    window.addEventListener('beforeprint', () => this.drawing.paintAll());
    window.addEventListener('scroll', () => this.tooltip.hide(), { passive: true });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const box = byId('search');
    const isTyping = event.target instanceof HTMLInputElement;
    if (event.key === 'Escape') {
      if (this.inspector.isOpen) this.select(null);
      else if (box.value !== '') this.searchFor('');
      else box.blur();
    } else if (event.key === '/' && !isTyping) {
      event.preventDefault();
      box.focus();
      box.select();
    } else if (!isTyping && this.inspector.isOpen && this.inspector.key(event.key)) {
      event.preventDefault();
    }
  }

  searchFor(query) {
    const box = byId('search');
    box.value = query;
    state.query = query;
    this.search();
    this.repaint();
    if (query !== '') byId('toolbar').scrollIntoView({ block: 'start' });
  }

  search() {
    this.test = readQuery(state.query);
    const { chunks } = this.model;
    const found = [];
    let sum = 0;
    for (const chunk of chunks) {
      chunk.isMatch = this.test === null || this.test(chunk);
      if (this.test !== null && chunk.isMatch) {
        found.push(chunk);
        sum += chunk.size;
      }
    }
    const output = byId('found');
    output.textContent = '';
    this.found.element.hidden = this.test === null;
    if (this.test !== null) {
      output.append(make('b', {}, count(found.length, 'match', 'matches')), `  ·  ${bytes(sum)} `, make('small', {}, `(${exact(sum)} bytes)  `));
      if (found.length > 0) output.append(make('a', { href: '#matches' }, 'list'));
    }
    this.found.setRows(found);
  }

  switchTo(which) {
    document.querySelector(`input[name=snapshot][value=${which}]`).checked = true;
    state.snapshot = which;
  }

  // Another snapshot is shown.
  turn() {
    this.select(null);
    this.search();
    this.lay();
  }

  lay() {
    const { look, model } = this;
    this.tooltip.hide();
    this.drawing.show(model, state.scale, look);
    showLegend(model, this.palette, look, (query) => this.searchFor(query));
    this.inspector.paint();
    const empty = model.vectors.filter((vector) => vector.strips.length === 0);
    byId('empty-vectors').hidden = empty.length === 0;
    byId('empty-vectors').textContent = `Without blocks: ${empty.map((vector) => vector.title.toLowerCase()).join(', ')}.`;
  }

  // Other colours. The legend is only rebuilt in this case, because one of its buttons may have the focus.
  recolour() {
    showLegend(this.model, this.palette, this.look, (query) => this.searchFor(query));
    this.repaint();
  }

  repaint() {
    const { look } = this;
    this.drawing.paint(look);
    if (this.inspector.isOpen) {
      this.inspector.look = look;
      this.inspector.paint();
    }
  }

  select(chunk) {
    const changed = [state.selected, chunk].filter(Boolean).map(({ strip }) => strip);
    state.selected = chunk;
    const { look } = this;
    this.drawing.paint(look, changed);
    if (chunk) this.inspector.show(chunk, look);
    else this.inspector.hide();
    document.body.classList.toggle('inspecting', chunk !== null);
  }

  // Selects a chunk from a table or by key, and scrolls to it.
  pickFrom(chunk, which) {
    if (state.snapshot !== which) {
      this.switchTo(which);
      this.turn();
    }
    this.select(chunk);
    const place = this.drawing.find(chunk);
    if (!place) return;
    const top = place.canvas.getBoundingClientRect().top + place.top;
    const covered = byId('toolbar').getBoundingClientRect().height + 20;
    if (top < covered || top > window.innerHeight - 320) window.scrollBy(0, top - covered - 60);
  }
}

function deviceLine(device) {
  // Shows "DISCRETE_GPU" as "discrete GPU".
  const kind = device.kind ? device.kind.toLowerCase().replace(/_/g, ' ').replace(/[cg]pu/, (unit) => unit.toUpperCase()) : null;
  const facts = [device.name, kind, device.api_version ? `Vulkan ${device.api_version}` : null].filter(Boolean);
  return facts.length > 0 ? facts.map(printable).join('  ·  ') : 'device not known';
}

let page = null;

function run() {
  let data;
  try {
    data = JSON.parse(byId('data').textContent);
  } catch (error) {
    fail(`The data of this page cannot be read: ${error.message}`);
    return;
  }
  page = new Page(data);
  page.start();
  // The painted result is on the screen two frames later. The time is measured from the start of loading.
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const drawnIn = performance.now();
    document.documentElement.dataset.drawnIn = drawnIn.toFixed(1);
    document.documentElement.dataset.state = 'ready';
    byId('drawn').textContent = `${count(page.models.now.allocations.length, 'allocation')} drawn in ${Math.round(drawnIn)} ms.`;
  }));
}

run();
