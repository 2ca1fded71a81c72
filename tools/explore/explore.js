'use strict';
// The sliders of `ddpsim explore`. What was moved is kept in the address behind '#', so that each
// state is a link; the server predicts, and this draws what it answers.
(() => {
  const byId = id => document.getElementById(id);
  const moved = new Map();     // control -> value, as the server takes it
  const controls = new Map();  // control -> {description, input, output, row}
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
    showFinding(answer);
    showTable(answer);
    showPicture(answer);
  }

  const percent = value => `${value > 0 ? '+' : value < 0 ? '\u2212' : '\u00b1'}${Math.abs(100 * value).toFixed(1)} %`;

  // The strategy that the page is about: DistributedDataParallel's, or the last one.
  function chief(results) {
    return results.find(each => each.strategy === 'bucketed') ?? results[results.length - 1];
  }

  function showFinding(answer) {
    const now = chief(answer.record.results), before = chief(given.record.results);
    const change = now.step_ms / before.step_ms - 1;
    const than = moved.size === 0 ? 'as given'
      : Math.abs(change) < 0.00005 ? 'as long as it was given'
        : `${Math.abs(100 * change).toFixed(1)} % ${change < 0 ? 'shorter' : 'longer'} than as given ` +
          `(${before.step_ms.toFixed(2)} ms)`;
    byId('finding').textContent =
      `A step of ${now.strategy} on ${answer.record.ranks} rank${answer.record.ranks === 1 ? '' : 's'} takes ` +
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
    const head = element('tr', {}, element('th', {scope: 'col', textContent: 'strategy'}),
      ...used.map(column => element('th', {scope: 'col', textContent: column.label})));
    const rows = results.map((now, i) => {
      const before = given.record.results[i];
      const cap = isNumber(now.bucket_cap_bytes) ? `, ${sizeText(now.bucket_cap_bytes)}` : '';
      const row = element('tr', {}, element('th', {scope: 'row', textContent: now.strategy + cap}));
      row.dataset.strategy = now.strategy;
      for (const column of used) {
        const value = cellValue(column, now);
        const cell = element('td', {}, element('span', {textContent: figure(column, value)}));
        cell.dataset.key = column.key;
        cell.append(changeOf(column, value, before && cellValue(column, before)));
        row.append(cell);
      }
      return row;
    });
    const caption = moved.size === 0 ? 'as given' : 'with the change against the scenario as given';
    byId('table').replaceChildren(element('table', {}, element('caption', {textContent: caption}),
      element('thead', {}, head), element('tbody', {}, ...rows)));
  }

  function sizeText(bytes) {
    for (const [unit, name] of [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']])
      if (bytes >= unit) return `${Number((bytes / unit).toPrecision(4))} ${name}`;
    return `${bytes} B`;
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
    if (!control || control.input.tagName === 'SELECT') return;
    control.input.value = position.option;
    control.output.textContent = position.text;
    control.input.setAttribute('aria-valuetext', position.text);
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
    byId('saved').textContent = '';
    showMoved();
    ask();
  }

  function makeControl(description) {
    const {id, options} = description, fixed = description.unavailable !== '';
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
    input.disabled = fixed;
    row.append(input);
    if (fixed) {
      const why = element('p', {className: 'why', id: `${id}-why`, textContent: description.unavailable});
      input.setAttribute('aria-describedby', why.id);
      row.append(why);
    }
    controls.set(id, {description, input, output, row});
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

  function readAddress() {
    moved.clear();
    for (const [id, value] of new URLSearchParams(location.hash.slice(1)))
      if (value !== '') moved.set(id, value);
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
    readAddress();
    ask();
    window.addEventListener('hashchange', () => { readAddress(); ask(); });
    byId('reset').addEventListener('click', () => { moved.clear(); showMoved(); ask(); });
    byId('save').addEventListener('click', save);
    byId('controls').addEventListener('submit', event => event.preventDefault());
  }

  begin();
})();
