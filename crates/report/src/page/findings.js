// The findings of a recording: a list of advice, whose objects lead to the map.

const FINDINGS_LEAD = 'The number in front is what a finding would save. A name leads to its place on the map. '
  + 'Whether a candidate applies, only the author of the program knows.';

const SHOWN_OBJECTS = 6;

// `go(label)` shows an object on the map. `isThere(label)` is true for objects that the map has.
function showFindings(findings, isThere, go) {
  const list = byId('findings-list');
  list.textContent = '';
  list.append(...findings.map((finding) => {
    const object = ({ label, bytes: size, about }) => {
      const name = isThere(label) ? make('button', { type: 'button', onclick: () => go(label) }, given(label)) : given(label);
      return make('li', {}, name, `: ${bytes(size)}${about ? `, ${printable(about)}` : ''}`);
    };
    const shown = finding.objects.slice(0, SHOWN_OBJECTS).map(object);
    const more = finding.count - shown.length;
    return make('li', { class: finding.is_candidate ? 'candidate' : null, data: { kind: finding.kind } },
      make('p', {},
        finding.bytes > 0 ? make('b', { title: `${exact(finding.bytes)} bytes` }, bytes(finding.bytes)) : null,
        finding.is_candidate ? make('span', { class: 'flag' }, 'candidate') : null,
        make('span', {}, printable(finding.text))),
      make('p', { class: 'aside' }, printable(finding.advice)),
      shown.length > 0 ? make('ul', { class: 'objects' }, shown, more > 0 ? make('li', {}, `and ${exact(more)} more`) : null) : null);
  }));
  byId('findings-lead').textContent = findings.length === 0 ? 'None: nothing to improve was found in the calls of the program.' : FINDINGS_LEAD;
  byId('findings').hidden = false;
}
