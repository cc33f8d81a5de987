// Tables, sorted by any column and cut to a readable length.

const FIRST_ROWS = 12;
const MORE_ROWS = 200;
// The number of rows that fits a window of 800 pixels.
const MOST_COLUMNS = 6;

// Returns the first `wanted` rows in the order of `compare`. Usually they are far fewer than all rows, and inserting each
// row into them is faster than sorting all. This is not so for more than a thousand.
function firstRows(rows, wanted, compare) {
  if (wanted > 1000 || wanted >= rows.length / 8) return rows.sort(compare).slice(0, wanted);
  const first = rows.slice(0, wanted).sort(compare);
  for (let at = wanted; at < rows.length; at += 1) {
    const row = rows[at];
    if (compare(row, first[wanted - 1]) >= 0) continue;
    let place = wanted - 1;
    while (place > 0 && compare(row, first[place - 1]) < 0) {
      first[place] = first[place - 1];
      place -= 1;
    }
    first[place] = row;
  }
  return first;
}

// A column of bytes: short, with the exact value as a tooltip.
function bytesColumn(label, value, show = bytes) {
  return { label, value, isNumber: true, show: (row) => make('span', { title: `${exact(value(row))} bytes` }, show(value(row))) };
}

function numberColumn(label, value) {
  return { label, value, isNumber: true, show: (row) => exact(value(row)) };
}

function textColumn(label, value, empty = '') {
  return {
    label,
    value: (row) => value(row) || '',
    show: (row) => (value(row) ? given(value(row)) : make('span', { class: 'unnamed' }, empty)),
  };
}

class Table {
  // `columns`: {label, value(row), show(row), isNumber, order(row)}; sorted by `order`, or else by `value`. `pick(row)`
  // makes rows selectable.
  constructor({ id, title, note, columns, rows, sort = 0, descending = true, pick = null, isWide = false }) {
    this.columns = columns;
    this.pick = pick;
    this.sort = sort;
    this.descending = descending;
    this.heads = columns.map((column, at) => make('th', { scope: 'col', class: column.isNumber ? 'number' : null },
      make('button', { type: 'button', onclick: () => this.sortBy(at) }, column.label)));
    this.body = make('tbody', {});
    this.note = make('p', { class: 'aside' });
    this.more = make('button', { type: 'button', class: 'more', onclick: () => this.grow() });
    this.heading = make('h3', {}, title);
    const classes = ['table', isWide && 'wide', columns.length > MOST_COLUMNS && 'many'].filter(Boolean);
    this.element = make('section', { id, class: classes.join(' ') },
      this.heading,
      note ? make('p', { class: 'aside' }, note) : null,
      make('div', { class: 'scroll' }, make('table', {}, make('thead', {}, make('tr', {}, this.heads)), this.body)),
      this.note, this.more);
    this.setRows(rows);
  }

  setRows(rows) {
    this.rows = rows;
    this.shown = FIRST_ROWS;
    this.element.dataset.rows = String(rows.length);
    this.arrange();
  }

  sortBy(at) {
    this.descending = at === this.sort ? !this.descending : Boolean(this.columns[at].isNumber);
    this.sort = at;
    this.arrange();
  }

  grow() {
    this.shown += MORE_ROWS;
    this.draw();
  }

  arrange() {
    this.heads.forEach((head, at) => {
      if (at === this.sort) head.setAttribute('aria-sort', this.descending ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    this.draw();
  }

  // The shown rows in their order. Equal rows keep theirs.
  shownRows() {
    const { value, order = value } = this.columns[this.sort];
    const sign = this.descending ? -1 : 1;
    const keyed = this.rows.map((row, at) => ({ row, at, key: order(row) }));
    const compare = (a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : a.at - b.at);
    return firstRows(keyed, this.shown, compare).map(({ row }) => row);
  }

  draw() {
    const rows = this.shownRows();
    this.body.textContent = '';
    this.body.append(...rows.map((row) => this.drawRow(row)));
    const hidden = this.rows.length - rows.length;
    this.more.hidden = hidden <= 0;
    this.more.textContent = hidden > MORE_ROWS ? `Show ${MORE_ROWS} more of ${exact(hidden)}` : `Show ${hidden} more`;
    this.note.textContent = this.rows.length === 0 ? 'None.' : '';
    this.note.hidden = this.rows.length !== 0;
  }

  drawRow(row) {
    const cells = this.columns.map((column, at) => {
      const shown = column.show(row);
      // A button in the first cell makes the row selectable by keyboard.
      const inner = this.pick && at === 0 ? make('button', { type: 'button', class: 'pick' }, shown) : shown;
      const data = { value: String(column.value(row)), label: column.label };
      return make('td', { class: column.isNumber ? 'number' : null, data }, inner);
    });
    return make('tr', this.pick ? { class: 'pickable', onclick: () => this.pick(row) } : {}, cells);
  }
}

const chunkColumns = {
  name: textColumn('Name', (chunk) => (chunk.allocation ? chunk.allocation.name : null), 'unnamed'),
  size: bytesColumn('Size', (chunk) => chunk.size),
  kind: textColumn('Kind', (chunk) => (chunk.allocation ? chunk.allocation.kind : 'free')),
  place: textColumn('In', (chunk) => `${chunk.strip.vector.place}, ${chunk.strip.title}`),
  offset: numberColumn('Offset', (chunk) => chunk.offset),
  caller: textColumn('Caller', (chunk) => (chunk.allocation ? chunk.allocation.caller : null)),
};

function columnsFor(chunks) {
  const { name, size, kind, place, offset, caller } = chunkColumns;
  const hasCallers = chunks.some((chunk) => chunk.allocation && chunk.allocation.caller);
  return hasCallers ? [name, size, kind, place, offset, caller] : [name, size, kind, place, offset];
}

function chunkTable(id, title, chunks, pick, note, columns = columnsFor(chunks)) {
  return new Table({ id, title, note, columns, rows: chunks, sort: 1, pick, isWide: true });
}

function sumTable(id, title, label, sums, empty, pick) {
  const columns = [
    textColumn(label, (row) => row.key, empty),
    bytesColumn('Bytes', (row) => row.bytes),
    numberColumn('Allocations', (row) => row.count),
    bytesColumn('Largest', (row) => row.largest),
  ];
  return new Table({ id, title, columns, rows: sums, sort: 1, pick });
}

function vectorTable(vectors) {
  const columns = [
    textColumn('Vector', (vector) => vector.place),
    numberColumn('Blocks', (vector) => vector.sums.blocks - vector.sums.dedicated),
    numberColumn('Dedicated', (vector) => vector.sums.dedicated),
    numberColumn('Allocations', (vector) => vector.sums.allocations),
    bytesColumn('Reserved', (vector) => vector.sums.reserved),
    bytesColumn('Used', (vector) => vector.sums.used),
    bytesColumn('Free', (vector) => vector.sums.free),
    numberColumn('Free ranges', (vector) => vector.sums.freeRanges),
    bytesColumn('Largest free', (vector) => vector.sums.largestFree),
    {
      label: 'Scattered',
      isNumber: true,
      value: (vector) => vector.figures.scatter,
      show: (vector) => percent(vector.figures.scatter),
    },
    bytesColumn('Empty blocks', (vector) => vector.figures.empty_bytes),
  ];
  // A recording has no estimate.
  const hasEstimate = vectors.some((vector) => vector.figures.removable_bytes !== undefined);
  if (hasEstimate) columns.push(bytesColumn('Defragmentation', (vector) => vector.figures.removable_bytes));
  const note = 'Scattered is the share of the free memory that is not in the largest free range. Trimming gives empty blocks back'
    + `${hasEstimate ? '; what defragmentation could free is an estimate' : ''}.`;
  return new Table({ id: 'vectors-table', title: 'Pools and memory types', note, columns, rows: vectors, sort: 4, isWide: true });
}

function leakTable(leaks) {
  const columns = [
    textColumn('Name', (leak) => leak.name, 'unnamed'),
    bytesColumn('Size', (leak) => leak.size),
    textColumn('Kind', (leak) => leak.kind),
    numberColumn('Memory type', (leak) => leak.memory_type),
    textColumn('Pool', (leak) => leak.pool),
    textColumn('User data', (leak) => leak.user_data),
    textColumn('Caller', (leak) => leak.caller),
  ];
  const sum = leaks.reduce((all, leak) => all + leak.size, 0);
  const note = `${count(leaks.length, 'allocation')} with ${exact(sum)} bytes ${leaks.length === 1 ? 'was' : 'were'} never given back.`;
  return new Table({ id: 'leaks', title: 'Leaks', note, columns, rows: leaks, sort: 1, isWide: true });
}

// The slots of a descriptor heap, to scale. If there are more runs than pixels, sums are shown.
const MOST_RUNS = 300;

function slotStrip(heap) {
  const uses = ['live', 'transient', 'retiring', 'free'];
  const sum = (use) => heap.runs.reduce((all, run) => all + (run.use === use ? run.count : 0), 0);
  const runs = heap.runs.length <= MOST_RUNS ? heap.runs : uses.map((use) => ({ use, count: sum(use) }));
  return make('span', { class: 'slots' }, ...runs.map((run) => {
    const part = make('span', { class: `slots-${run.use}`, title: `${exact(run.count)} ${run.use}` });
    part.style.flexGrow = String(run.count);
    return part;
  }));
}

function descriptorHeapTable(heaps) {
  const sum = (heap, use) => heap.runs.reduce((all, run) => all + (run.use === use ? run.count : 0), 0);
  const columns = [
    textColumn('Name', (heap) => heap.name, 'unnamed'),
    { label: 'Map', value: (heap) => heap.slots - sum(heap, 'free'), show: slotStrip },
    numberColumn('Slots', (heap) => heap.slots),
    numberColumn('Live', (heap) => sum(heap, 'live')),
    numberColumn('Waiting', (heap) => sum(heap, 'retiring') + sum(heap, 'transient')),
    numberColumn('Free', (heap) => sum(heap, 'free')),
    numberColumn('Largest free', (heap) => heap.runs.reduce((most, run) => Math.max(most, run.use === 'free' ? run.count : 0), 0)),
    numberColumn('Peak', (heap) => heap.peak),
  ];
  return new Table({ id: 'descriptor-heaps', title: 'Descriptor heaps', columns, rows: heaps, sort: 2, isWide: true });
}

// The pools of each allocator of sets.
function eachPoolTable(pools) {
  const rows = pools.flatMap((owner) => (owner.each || []).map((pool, at) => ({ ...pool, name: owner.name, at })));
  const columns = [
    textColumn('Name', (row) => row.name, 'unnamed'),
    numberColumn('Pool', (row) => row.at),
    textColumn('State', (row) => row.state),
    numberColumn('Sets', (row) => row.sets),
    numberColumn('Live', (row) => row.live_sets),
    numberColumn('Free', (row) => row.free_sets),
    textColumn('Descriptors left', (row) => row.descriptors.map((sum) => `${exact(sum.left)} of ${exact(sum.made)} ${sum.kind}`).join(', ')),
  ];
  return new Table({ id: 'each-descriptor-pool', title: 'Descriptor pools, each', columns, rows, sort: 4, isWide: true });
}

function descriptorPoolTable(pools) {
  const columns = [
    textColumn('Name', (row) => row.name, 'unnamed'),
    textColumn('Sets', (row) => (row.transient ? 'of recordings' : 'that stay')),
    numberColumn('Pools', (row) => row.pools),
    numberColumn('Idle pools', (row) => row.idle_pools),
    numberColumn('Live sets', (row) => row.live_sets),
    textColumn('Waiting', (row) => (row.transient ? count(row.waiting_pools, 'pool') : count(row.waiting_sets, 'set'))),
  ];
  return new Table({ id: 'descriptor-pools', title: 'Descriptor pools', columns, rows: pools, sort: 2, isWide: true });
}
