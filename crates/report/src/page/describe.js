// The description of a chunk, for the tooltip and the inspector.

// Pairs of a label and a value. `isLong` adds pairs that do not fit the tooltip.
function factsOf(chunk, isLong) {
  const { allocation, strip } = chunk;
  const facts = [['Size', [bytes(chunk.size), make('small', {}, ` ${exact(chunk.size)} bytes`)]]];
  if (!strip.dedicated) facts.push(['Offset', [exact(chunk.offset), make('small', {}, ` 0x${chunk.offset.toString(16)}`)]]);
  facts.push(['In', `${strip.title}, ${strip.vector.place}`]);
  if (!allocation) return facts;
  facts.push(['Role', ROLES[roleOf(allocation)]]);
  if (allocation.note) facts.push(['Image', given(allocation.note)]);
  const usage = usageNames(allocation.kind, allocation.usage);
  if (usage.length > 0) facts.push(['Usage', usage.join(' | ')]);
  if (allocation.user_data !== null && allocation.user_data !== undefined) facts.push(['User data', given(allocation.user_data)]);
  if (allocation.caller) facts.push(['Caller', given(allocation.caller)]);
  if (isLong && allocation.id) facts.push(['Id', given(allocation.id)]);
  if (isLong && strip.mapCount !== undefined) facts.push(['Mapped', strip.mapCount > 0 ? `yes, ${count(strip.mapCount, 'user')} of the block's mapping` : 'no']);
  return facts;
}

function headingOf(chunk) {
  if (!chunk.allocation) return [make('span', { class: 'unnamed' }, 'free')];
  return [chunk.name ? given(chunk.name, 'name') : make('span', { class: 'unnamed' }, 'unnamed')];
}

function factList(facts) {
  return make('dl', {}, facts.map(([label, value]) => [make('dt', {}, label), make('dd', {}, value)]));
}

class Tooltip {
  constructor(element) {
    this.element = element;
    this.chunk = null;
  }

  show(chunk, x, y, note) {
    const { element } = this;
    if (chunk !== this.chunk) {
      this.chunk = chunk;
      element.textContent = '';
      element.append(
        make('p', { class: 'title' }, headingOf(chunk), chunk.allocation ? make('span', { class: 'kind' }, chunk.allocation.kind) : null),
        factList(factsOf(chunk, false)));
      if (note) element.append(make('p', { class: 'note' }, note));
      element.hidden = false;
      this.box = element.getBoundingClientRect();
    }
    // Beside the pointer, on the side with more space.
    const { width, height } = this.box;
    const left = x + 16 + width > window.innerWidth ? x - 14 - width : x + 16;
    const top = y + 18 + height > window.innerHeight ? y - 12 - height : y + 18;
    element.style.left = `${Math.max(4, left)}px`;
    element.style.top = `${Math.max(4, top)}px`;
  }

  hide() {
    this.element.hidden = true;
    this.chunk = null;
  }
}
