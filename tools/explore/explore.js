'use strict';
// The sliders of `ddpsim explore`. What was moved is kept in the address behind '#', so that each
// state is a link; the server predicts, and this draws what it answers.
(() => {
  const longestValue = 64;  // of a setting in the address
  const byId = id => document.getElementById(id);
  const moved = new Map();     // control -> value, as the server takes it
  const controls = new Map();  // control -> {description, input, output, row, why}
  const page = window.ddpsimExplore = {answer: null, answers: 0, busy: false, milliseconds: 0};
  const shown = new Set();     // strategies whose timelines are drawn
  let given = null;            // the answer of the scenario as it was given
  let wanted = null;           // what is to be asked next
  let since = 0;               // when the move was made that is to be answered next

  function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  async function post(what, content) {
    const answer = await fetch(what, {
      method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(content)});
    if (!answer.ok) throw new Error(`${answer.status}: ${(await answer.text()).trim()}`);
    return answer.json();
  }

  // --- asking: one request at a time, and behind it only the newest

  function asked() { return {moved: Object.fromEntries(moved), shown: [...shown]}; }

  function ask() {
    if (wanted === null) since = performance.now();
    wanted = asked();
    if (!page.busy) answerAll();
  }

  async function answerAll() {
    page.busy = true;
    while (wanted !== null) {
      const begin = since, now = wanted;
      wanted = null;
      try {
        show(await post('answer', now));
      } catch (problem) {
        refuse(`ddpsim explore does not answer any more (${problem.message}): is it still running?`);
      }
      page.milliseconds = performance.now() - begin;
      ++page.answers;
      if (wanted === null) await nameTasks(now);
    }
    page.busy = false;
  }

  // What a pointer finds on the picture: asked for once the sliders stand still.
  async function nameTasks(now) {
    if (!page.answer) return;
    try {
      const tasks = await post('tasks', now);
      if (tasks.error === undefined) takeUp(tasks);
    } catch {
      // The next move says that there is no answer any more.
    }
  }

  // --- showing

  function refuse(why) {
    byId('refusal').textContent = why;
    byId('refusal').hidden = false;
    byId('findings').classList.add('stale');
  }

  function show(answer) {
    showMoved();
    if (answer.error !== undefined) return refuse(answer.error);
    page.answer = answer;
    byId('refusal').hidden = true;
    byId('findings').classList.remove('stale');
    byId('cluster').textContent = answer.cluster;
    byId('command').textContent = answer.command;
    byId('notes').replaceChildren(...answer.notes.map(text => element('li', {textContent: text})));
    for (const [id, position] of Object.entries(answer.positions)) place(id, position);
    showHeadline(answer);
    showFinding(answer);
    showTable(answer);
    showPicture(answer);
  }

  const percent = value => `${value > 0 ? '+' : value < 0 ? '\u2212' : '\u00b1'}${Math.abs(100 * value).toFixed(1)} %`;

  // The strategy that the page is about: DistributedDataParallel's, or the last one.
  function chief(results) {
    return results.find(each => each.strategy === 'bucketed') ?? results[results.length - 1];
  }

  // What whoever pays asks first: the rate, the cost and the memory.
  function showHeadline(answer) {
    const now = chief(answer.record.results), {memory} = now;
    const tokens = isNumber(now.tokens_per_second);
    const rate = tokens ? now.tokens_per_second : now.samples_per_second;
    const amount = tokens ? 'a billion tokens' : 'a million samples';
    const cost = tokens ? now.cost_per_billion_tokens : now.cost_per_million_samples;
    const hours = tokens ? now.device_hours_per_billion_tokens : now.device_hours_per_million_samples;
    const gib = bytes => `${Number((bytes / 2 ** 30).toPrecision(3))} GiB`;
    const figures = [
      isNumber(rate)
        ? [`${rate.toLocaleString('en', {maximumFractionDigits: rate < 1000 ? 1 : 0})} ${tokens ? 'tokens' : 'samples'}/s`,
          `all ranks together: ${now.strategy} on ${ranksText(answer.record.ranks)}`]
        : ['samples/s unknown', 'The workload does not say how large its batch is.'],
      isNumber(cost) ? [`${cost.toFixed(2)} ${now.currency}`, `the cost of ${amount}`]
        : isNumber(hours) ? [`${hours.toFixed(2)} GPU-hours`, `for ${amount}; set cluster.price for the cost in money`]
          : ['cost unknown', 'It needs the size of the batch.'],
      [now.fits_device === true ? 'fits in memory'
        : now.fits_device === false ? 'does not fit in memory' : 'memory unknown',
      `${typeof now.fits_device === 'boolean' ? '' : 'at least '}${gib(memory.peak_bytes)}` +
        `${isNumber(memory.device_bytes) ? ` of the ${gib(memory.device_bytes)} of a device` : ''}, at the peak of a rank`]];
    byId('headline').replaceChildren(...figures.map(([value, about]) => element('div', {},
      element('dt', {textContent: value}), element('dd', {textContent: about}))));
  }

  const ranksText = ranks => ranks === 1 ? 'one rank' : `${ranks} ranks`;

  function showFinding(answer) {
    const now = chief(answer.record.results), before = chief(given.record.results);
    const change = now.step_ms / before.step_ms - 1;
    const than = moved.size === 0 ? 'as given'
      : Math.abs(change) < 0.00005 ? 'as long as it was given'
        : `${Math.abs(100 * change).toFixed(1)} % ${change < 0 ? 'shorter' : 'longer'} than as given ` +
          `(${before.step_ms.toFixed(2)} ms)`;
    byId('finding').textContent =
      `A step of ${now.strategy} on ${ranksText(answer.record.ranks)} takes ` +
      `${now.step_ms.toFixed(2)} ms, ${than}; ${now.exposed_ms.toFixed(2)} ms of it are exposed communication.`;
  }

  // The columns, those of which the record has figures.
  const columns = [
    {key: 'step_ms', label: 'step ms', digits: 2, better: 'low'},
    {key: 'exposed_ms', label: 'exposed ms', digits: 2, better: 'low'},
    {key: 'communication_ms', label: 'comm ms', digits: 2, better: 'low'},
    {key: 'overlap_ratio', label: 'overlap', percent: true, better: 'high'},
    {key: 'speedup_vs_naive', label: 'speed-up', digits: 3, unit: 'x', better: 'high'},
    {key: 'tokens_per_second', label: 'tokens/s', digits: 0, better: 'high'},
    {key: 'samples_per_second', label: 'samples/s', digits: 1, better: 'high'},
    {key: 'mfu', label: 'MFU', percent: true, better: 'high'},
    {key: 'collectives', label: 'collectives', digits: 0},
    {key: 'bound', label: 'bound'}];

  const narrow = window.matchMedia('(max-width: 700px)');

  const isNumber = value => typeof value === 'number';

  // Where nothing is communicated there is nothing to hide.
  const cellValue = (column, result) =>
    column.key === 'overlap_ratio' && !(result.communication_ms > 0) ? null : result[column.key];

  function figure(column, value) {
    if (value === null || value === undefined) return '-';
    if (!isNumber(value)) return value;
    if (column.percent) return `${(100 * value).toFixed(1)} %`;
    return value.toLocaleString('en', {minimumFractionDigits: column.digits,
      maximumFractionDigits: column.digits, useGrouping: column.digits === 0}) + (column.unit ?? '');
  }

  // Against the scenario as given; empty where there is none, but it takes its line all the same.
  function changeOf(column, now, before) {
    const none = () => element('span', {className: 'change'});
    if (!column.better || moved.size === 0 || !isNumber(now) || !isNumber(before)) return none();
    if (before === 0 && !column.percent) return none();
    const change = column.percent ? now - before : now / before - 1;
    if (Math.abs(change) < 0.0005) return none();
    const good = (change < 0) === (column.better === 'low');
    const text = column.percent ? `${percent(change).slice(0, -2)} points` : percent(change);
    return element('span', {className: `change ${good ? 'better' : 'worse'}`, textContent: text});
  }

  function showTable(answer) {
    const results = answer.record.results;
    const known = key => results.some(each => isNumber(each[key]));
    const used = columns.filter(({key}) => key === 'bound' || (known(key) &&
      !(key === 'samples_per_second' && known('tokens_per_second'))));
    const cellOf = (now, column) => {
      const before = given.record.results[results.indexOf(now)], value = cellValue(column, now);
      const cell = element('td', {}, element('span', {textContent: figure(column, value)}));
      Object.assign(cell.dataset, {key: column.key, strategy: now.strategy});
      cell.append(changeOf(column, value, before && cellValue(column, before)));
      return cell;
    };
    // On a narrow page strategies stand beside one another, and their figures below.
    const turned = narrow.matches;
    const across = turned ? results : used, down = turned ? used : results;
    const heading = each => each.label;
    const head = element('tr', {}, element('th', {scope: 'col', textContent: turned ? 'figure' : 'strategy'}),
      ...across.map(each => element('th', {scope: 'col', textContent: heading(each)})));
    const rows = down.map(row => element('tr', {}, element('th', {scope: 'row', textContent: heading(row)}),
      ...across.map(each => turned ? cellOf(each, row) : cellOf(row, each))));
    const caption = moved.size === 0 ? 'as given' : 'with the change against the scenario as given';
    byId('table').classList.toggle('turned', turned);
    byId('table').replaceChildren(element('table', {}, element('caption', {textContent: caption}),
      element('thead', {}, head), element('tbody', {}, ...rows)));
  }

  function showPicture(answer) {
    const box = byId('drawn'), old = box.querySelector('svg');
    const parsed = element('template');
    parsed.innerHTML = answer.picture;
    const picture = parsed.content.firstElementChild;
    if (old) old.replaceWith(picture); else box.append(picture);
    if (window.ddpsimTimelines) takeUp(answer.frame);
    else if (!document.querySelector('script.timelines')) {
      // The script of reports takes up the figures that it finds.
      box.after(element('script', {type: 'application/json', className: 'tasks',
        textContent: JSON.stringify(answer.frame)}));
      document.head.append(element('script', {className: 'timelines', src: 'page.js'}));
    }
  }

  // Figures of the picture that is drawn; what was zoomed to stays in view.
  function takeUp(data) {
    const timeline = window.ddpsimTimelines?.[0], script = document.querySelector('script.tasks');
    if (!timeline && script) script.textContent = JSON.stringify(data);  // for page.js to find
    if (!timeline) return;
    const {from, to} = timeline, whole = to - from >= timeline.data.end;
    const scale = timeline.data.tick_ns / data.tick_ns;
    timeline.load(data);
    if (!whole) timeline.show(from * scale, to * scale);
  }

  // --- controls

  function place(id, position) {
    const control = controls.get(id);
    if (!control) return;
    fix(control, position.unavailable);
    if (control.input.tagName === 'SELECT') {
      control.input.options[0].textContent = position.text;  // where nothing is chosen
      return;
    }
    control.input.value = position.option;
    control.output.textContent = position.text;
    control.input.setAttribute('aria-valuetext', position.text);
  }

  // Lets a control be moved, or says why it cannot be.
  function fix(control, why) {
    control.input.disabled = why !== '';
    control.why.textContent = why;
    control.why.hidden = why === '';
    if (why === '') control.input.removeAttribute('aria-describedby');
    else control.input.setAttribute('aria-describedby', control.why.id);
  }

  function showMoved() {
    for (const [id, control] of controls) {
      control.row.classList.toggle('moved', moved.has(id));
      if (control.input.tagName === 'SELECT') control.input.value = moved.get(id) ?? '';
    }
    byId('reset').disabled = moved.size === 0;
    const words = new URLSearchParams(moved).toString();
    const address = location.pathname + (words ? `#${words}` : '');
    if (address !== location.pathname + location.hash) history.replaceState(null, '', address);
    byId('link').textContent = location.href;
  }

  function move(id, value) {
    if (value === '') moved.delete(id); else moved.set(id, value);
    byId('saved').textContent = byId('ignored').textContent = '';
    showMoved();
    ask();
  }

  function makeControl(description) {
    const {id, options} = description;
    // The group's legend says the rest.
    const words = description.label.replace(` ${description.group}`, '');
    const label = element('label', {htmlFor: id, textContent: words});
    const back = element('button', {type: 'button', textContent: '\u21ba', title: 'as given'});
    back.setAttribute('aria-label', `${description.label}: as given`);
    back.addEventListener('click', () => move(id, ''));
    const head = element('div', {className: 'head'}, label);
    const row = element('div', {className: 'control'}, head);
    let input, output = null;
    if (description.measure === 'choice') {
      input = element('select', {id}, ...options.map(each =>
        element('option', {value: each.value, textContent: each.text})));
      input.addEventListener('change', () => move(id, input.value));
    } else {
      output = element('output', {htmlFor: id});
      input = element('input', {id, type: 'range', min: 0, max: options.length - 1, step: 1});
      input.addEventListener('input', () => {
        const chosen = options[input.value];
        output.textContent = chosen.text;
        input.setAttribute('aria-valuetext', chosen.text);
        move(id, chosen.value);
      });
      head.append(output);
    }
    head.append(back);
    const why = element('p', {className: 'why', id: `${id}-why`});
    row.append(input, why);
    const control = {description, input, output, row, why};
    fix(control, description.unavailable);
    controls.set(id, control);
    return row;
  }

  function makeControls(descriptions) {
    const groups = new Map();
    for (const each of descriptions) {
      if (!groups.has(each.group))
        groups.set(each.group, element('fieldset', {}, element('legend', {textContent: each.group})));
      groups.get(each.group).append(makeControl(each));
    }
    byId('controls').append(...groups.values());
  }

  // What the address says of the controls. What is no control's, or can be no value, is another
  // page's or another version's: it is left out, and named in a line.
  async function readAddress() {
    let ignored = [];
    moved.clear();
    for (const [id, value] of new URLSearchParams(location.hash.slice(1)))
      if (!controls.has(id) || value.length > longestValue) ignored.push(id);
      else if (value !== '') moved.set(id, value);
    if (moved.size > 0 && await refusal(Object.fromEntries(moved))) {
      for (const [id, value] of [...moved]) {
        if (!await refusal({[id]: value})) continue;
        moved.delete(id);
        ignored.push(id);
      }
      if (moved.size > 0 && await refusal(Object.fromEntries(moved))) {  // each would do alone, but not together
        ignored = ignored.concat([...moved.keys()]);
        moved.clear();
      }
    }
    byId('ignored').textContent = ignoredText(ignored);
  }

  // Why the scenario cannot be so; nothing if it can.
  async function refusal(settings) {
    return (await post('answer', {moved: settings, shown: []})).error;
  }

  function ignoredText(ignored) {
    if (ignored.length === 0) return '';
    const names = ignored.slice(0, 3).map(id => `"${id.length > 24 ? `${id.slice(0, 24)}\u2026` : id}"`).join(', ');
    const more = ignored.length > 3 ? ` and ${ignored.length - 3} more` : '';
    return `Ignored in this page's address: ${names}${more}. No control of this page takes that; ` +
      'expected for example #bucket_cap=50+MiB.';
  }

  // Which timelines are drawn: at first the one that the page is about.
  function makeChoiceOfTimelines() {
    const results = given.record.results;
    shown.add(chief(results).strategy);
    for (const {strategy} of results) {
      const box = element('input', {type: 'checkbox', id: `show-${strategy}`, checked: shown.has(strategy)});
      box.addEventListener('change', () => {
        if (box.checked) shown.add(strategy); else shown.delete(strategy);
        ask();
      });
      byId('shown').append(element('label', {}, box, ` ${strategy}`));
    }
  }

  async function save() {
    try {
      const answer = await post('save', {moved: Object.fromEntries(moved)});
      byId('saved').textContent = answer.error ?? `written: ${answer.file}`;
    } catch (problem) {
      byId('saved').textContent = `not saved: ${problem.message}`;
    }
  }

  async function followAddress() {
    try {
      await readAddress();
    } catch {
      // The question below says that there is no answer any more.
    }
    ask();
  }

  async function begin() {
    try {
      const site = await (await fetch('controls')).json();
      byId('name').textContent = site.scenario;
      document.title = `${site.scenario}: ddpsim explore`;
      makeControls(site.controls);
      given = await post('answer', {moved: {}, shown: []});
      if (given.error !== undefined) return refuse(given.error);
    } catch (problem) {
      return refuse(`ddpsim explore does not answer (${problem.message}): is it still running?`);
    }
    makeChoiceOfTimelines();
    await followAddress();
    window.addEventListener('hashchange', followAddress);
    narrow.addEventListener('change', () => { if (page.answer) showTable(page.answer); });
    byId('reset').addEventListener('click', () => { moved.clear(); showMoved(); ask(); });
    byId('save').addEventListener('click', save);
    byId('controls').addEventListener('submit', event => event.preventDefault());
  }

  begin();
})();
