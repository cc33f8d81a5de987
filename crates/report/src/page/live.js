// Live: fetches newer states of the recordings from the server of the page, until the program ends.

const LIVE_PAUSE = 1000;
// After this many failed requests, the server has ended.
const LIVE_FAILURES = 3;

class Live {
  constructor() {
    this.version = 0;
    this.device = 0;
    // The last state of each device, from the end of the program on.
    this.ended = null;
    this.failures = 0;
    // The pending request; null while one is under way.
    this.timer = null;
    this.element = byId('live');
    this.element.hidden = false;
    this.choice = byId('device-choice');
    this.choice.addEventListener('change', () => this.choose(this.choice.selectedIndex));
    this.show('Live', true);
    byId('findings-title').textContent = 'Findings so far';
  }

  show(text, isLive) {
    this.element.textContent = text;
    this.element.classList.toggle('is-live', isLive);
  }

  // Each device has a state of its own, so the page begins again.
  choose(device) {
    this.device = device;
    this.version = 0;
    if (this.ended !== null) {
      if (this.ended[device]) page.setHistory(this.ended[device], true);
    } else if (this.timer !== null) {
      clearTimeout(this.timer);
      this.step();
    }
  }

  listDevices(devices) {
    const fresh = devices.slice(this.choice.length);
    this.choice.append(...fresh.map((device) => make('option', {}, printable(device))));
    byId('devices').hidden = devices.length < 2;
  }

  async fetchState(since, device) {
    const answer = await fetch(`data?since=${since}&device=${device}`, { cache: 'no-store' });
    if (answer.status === 204) return null;
    if (answer.status !== 200) throw new Error(String(answer.status));
    return answer.json();
  }

  take({ version, devices, history }, isOther) {
    this.listDevices(devices);
    // The file of a device that was chosen may not be readable yet.
    if (isOther && history === null) return;
    this.version = version;
    if (history !== null) page.setHistory(history, isOther);
  }

  async step() {
    this.timer = null;
    const { device, version } = this;
    try {
      const state = await this.fetchState(version, device);
      if (device !== this.device) {
        this.step();
        return;
      }
      if (state !== null) this.take(state, version === 0);
      if (state !== null && state.ended) {
        await this.finish(device);
        return;
      }
      this.failures = 0;
    } catch {
      this.failures += 1;
      if (this.failures >= LIVE_FAILURES) {
        this.show('The server has ended. This is the last state that it sent', false);
        return;
      }
    }
    this.timer = setTimeout(() => this.step(), LIVE_PAUSE);
  }

  // Fetches the last state of the other devices, because the server ends with the program.
  async finish(shown) {
    const ended = [];
    for (let device = 0; device < this.choice.length; device += 1) {
      ended.push(device === shown ? page.history.raw : (await this.fetchState(0, device)).history);
    }
    this.ended = ended;
    if (this.device !== shown) this.choose(this.device);
    this.show('The program has ended', false);
    byId('findings-title').textContent = 'Findings';
  }
}

if (page !== null) {
  page.timeline.select(null, page.history.last);
  new Live().step();
}
