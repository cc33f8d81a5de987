// The comparison of two snapshots: new allocations, freed ones, and changes of sums.

// Marks the chunks that the other snapshot lacks. `differences` has their indices among all allocations.
function markDifferences(before, now, differences) {
  for (const at of differences.new) now.allocations[at].isOnlyHere = true;
  for (const at of differences.gone) before.allocations[at].isOnlyHere = true;
}

// The same for two moments of one recording, by the numbers of allocations. Also marks those at another place.
function markChanges(before, now) {
  const was = new Map(before.allocations.map((chunk) => [chunk.allocation.number, chunk]));
  const isSame = (a, b) => a.number === b.number && a.dedicated === b.dedicated && a.vector.key === b.vector.key;
  for (const chunk of now.allocations) {
    const old = was.get(chunk.allocation.number);
    was.delete(chunk.allocation.number);
    chunk.isOnlyHere = old === undefined;
    if (old !== undefined && (old.offset !== chunk.offset || !isSame(old.strip, chunk.strip))) {
      chunk.isMoved = true;
      old.isMoved = true;
    }
  }
  for (const chunk of was.values()) chunk.isOnlyHere = true;
}

// Sums of both by one key, for keys with a difference.
function changesBy(before, now, keyOf) {
  const rows = new Map();
  const rowOf = (key) => {
    if (!rows.has(key)) rows.set(key, { key, before: 0, now: 0, countBefore: 0, countNow: 0 });
    return rows.get(key);
  };
  for (const sum of sumsBy(before.allocations, keyOf)) Object.assign(rowOf(sum.key), { before: sum.bytes, countBefore: sum.count });
  for (const sum of sumsBy(now.allocations, keyOf)) Object.assign(rowOf(sum.key), { now: sum.bytes, countNow: sum.count });
  return [...rows.values()].filter((row) => row.before !== row.now || row.countBefore !== row.countNow);
}

function changeTable(id, title, label, rows, empty) {
  const columns = [
    textColumn(label, (row) => row.key, empty),
    bytesColumn('Before', (row) => row.before),
    bytesColumn('Now', (row) => row.now),
    // Large decreases matter as much as large increases, so the absolute change is sorted.
    { ...bytesColumn('Change', (row) => row.now - row.before, signedBytes), order: (row) => Math.abs(row.now - row.before) },
    { label: 'Allocations', isNumber: true, value: (row) => row.countNow - row.countBefore, show: (row) => `${exact(row.countBefore)} → ${exact(row.countNow)}` },
  ];
  return new Table({ id, title, columns, rows, sort: 3 });
}

// One line with two bars, before above now, on a common scale.
function changeBar(label, before, now, scale) {
  const bar = (kind, sums) => {
    const used = make('span', { class: 'used' });
    const reserved = make('span', { class: 'reserved' });
    used.style.width = `${(sums.used / scale) * 100}%`;
    reserved.style.width = `${(sums.reserved / scale) * 100}%`;
    return make('div', { class: `bar ${kind}`, title: `${kind}: ${exact(sums.used)} of ${exact(sums.reserved)} bytes used` }, reserved, used);
  };
  const change = now.used - before.used;
  return make('div', { class: 'change' },
    make('span', { class: 'label' }, label),
    make('div', { class: 'bars' }, bar('before', before), bar('now', now)),
    make('span', { class: 'figures' },
      make('span', {}, `${bytes(before.used)} → ${bytes(now.used)}`),
      make('b', { class: change > 0 ? 'more' : change < 0 ? 'less' : 'same' }, signedBytes(change))));
}

function vectorsOfBoth(before, now) {
  const pairs = new Map();
  const none = new Sums();
  for (const vector of before.vectors) pairs.set(vector.key, { label: vector.place, before: vector.sums, now: none });
  for (const vector of now.vectors) {
    const pair = pairs.get(vector.key);
    pairs.set(vector.key, { label: vector.place, before: pair ? pair.before : none, now: vector.sums });
  }
  return [...pairs.values()].filter((pair) => pair.before.reserved > 0 || pair.now.reserved > 0);
}

// `pick(chunk, which)` selects a chunk of the snapshot 'before' or 'now'.
function showComparison(before, now, matching, pick) {
  const bars = byId('comparison-bars');
  bars.textContent = '';
  byId('comparison-tables').textContent = '';
  const pairs = vectorsOfBoth(before, now);
  const all = { label: 'All memory', before: before.total, now: now.total };
  const scale = Math.max(1, before.total.reserved, now.total.reserved);
  bars.append(
    make('p', { class: 'legend' },
      make('span', { class: 'key before' }, 'before, above'), make('span', { class: 'key now' }, 'now, below'),
      make('span', { class: 'key pale' }, 'pale: reserved, and free')),
    ...[all, ...pairs].map((pair) => changeBar(pair.label, pair.before, pair.now, scale)));
  const places = new Map([...before.vectors, ...now.vectors].map((vector) => [vector.key, vector.place]));
  const changedVectors = changesBy(before, now, (chunk) => chunk.strip.vector.key).map((row) => ({ ...row, key: places.get(row.key) }));
  const added = now.allocations.filter((chunk) => chunk.isOnlyHere);
  const gone = before.allocations.filter((chunk) => chunk.isOnlyHere);
  const sum = (chunks) => exact(chunks.reduce((bytesOfAll, chunk) => bytesOfAll + chunk.size, 0));
  const guess = matching === 'ids' ? '' : ' Recognised by place, size, kind and name, because the snapshots are not of one run: a guess.';
  const moved = now.allocations.filter((chunk) => chunk.isMoved);
  const tables = [
    changeTable('changed-names', 'By name', 'Name', changesBy(before, now, (chunk) => chunk.name || null), 'unnamed'),
    changeTable('changed-vectors', 'By pool and memory type', 'Vector', changedVectors, ''),
    chunkTable('added', 'New', added, (chunk) => pick(chunk, 'now'), `${count(added.length, 'allocation')} with ${sum(added)} bytes, not there before.${guess}`),
    chunkTable('gone', 'Gone', gone, (chunk) => pick(chunk, 'before'), `${count(gone.length, 'allocation')} with ${sum(gone)} bytes, no longer there.${guess}`),
  ];
  if (moved.length > 0) tables.push(chunkTable('moved', 'Moved', moved, (chunk) => pick(chunk, 'now'), `${count(moved.length, 'allocation')} with ${sum(moved)} bytes, at another place than before.`));
  byId('comparison-tables').append(...tables.map((table) => table.element));
  byId('comparison').hidden = false;
}
