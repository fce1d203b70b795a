// Accounts and breakers.
import { h, set, num, dur, time, exact, state, meter, empty, panel, spaced } from './ui.js';
import { pace } from './charts-job.js';
import { world, now, tree, zero, post, seg, onHost } from './api.js';
import { live, act, toast, head, sub, inset, calm } from './parts.js';
import { asker, retune } from './steer.js';
import { changes, pins } from './limits.js';

export const load = () => tree();
const of = (a, what) => onHost('api/accounts/' + seg(a.label) + '/' + what, a.host || null);
const park = a => ({
  title: 'Park ' + a.label, text: 'Nothing of this account starts before the time is over. What runs goes on.', button: 'Park',
  fields: [{ name: 'for', label: 'For how long', required: true, value: '15m', hint: 'such as 90s, 15m or 2h', valid: v => parse(v) > 0 }, { name: 'why', label: 'Why', hint: 'Others read this.' }],
  send: v => post(of(a, 'park'), { for_ms: parse(v.for), why: v.why }), done: v => toast('Asked to park for ' + v.for + '.'),
});
const parse = s => { const m = /^(\d+(?:\.\d+)?)\s*(s|m|h|d)$/.exec(s.trim()); return m ? m[1] * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[m[2]] : 0; };

export default function accounts(root) {
  const cards = h('div', { class: 'accs' }), breakers = h('div', {});
  const charts = new Map();
  const card = a => {
    const t = now(), parked = !zero(a.parked_until) && Date.parse(a.parked_until) > t, ch = a.changes || [], runs = (a.work || []).map(p => [Date.parse(p.at), p.working]);
    const from = Math.max(t - 9660e3, Math.min(runs[0]?.[0] ?? t, ch.length ? Date.parse(ch[0].at) : t) - 1000);
    const key = (a.host || '') + '/' + a.label, c = charts.get(key) || charts.set(key, pace({ cls: 'c-acc' })).get(key), drawn = ch.length || runs.length;
    if (drawn) c.show({ limit: ch.length ? [[from, ch.findLast(x => Date.parse(x.at) <= from)?.to ?? ch[0].from], ...ch.filter(x => Date.parse(x.at) > from).map(x => [Date.parse(x.at), x.to])] : [], running: runs.length ? [...runs, [t, a.working]] : [], from, to: t, marks: pins(ch, from), bands: (a.starvation || []).map(b => [Date.parse(b.from), b.to ? Date.parse(b.to) : t, 'the machine had too little processor time']), label: 'Limit of ' + a.label });
    return h('section', { class: 'panel acc', 'aria-label': a.label }, h('header', {}, h('h2', { class: 'nm' }, a.label), a.host ? h('span', { class: 'dim' }, a.host) : null, parked ? inset('limit', '', 'parked for ', live(() => dur(Date.parse(a.parked_until) - now()))) : null, a.starved ? inset('held', '', 'starved') : null, h('span', { class: 'side' }, a.limit ? a.fixed ? 'fixed by hand' : a.paced ? 'adapts' : 'fixed' : 'no limit')),
      h('div', { class: 'accn' }, h('span', { class: 'big n' }, num(a.working), h('span', { class: 'unit' }, a.limit ? ' of ' + num(a.limit) + ' run' : a.working === 1 ? ' runs' : ' run')), h('span', { class: 'dim n' }, `${a.jobs} ${a.jobs === 1 ? 'job' : 'jobs'}, ${a.waiting} with work that may not start`),
        parked ? act('Unpark', '', async () => { await post(of(a, 'park'), { for_ms: 0 }); toast('Asked.'); }) : asker('Park…', '', () => park(a)), asker('Retune…', '', () => retune(a.label, of(a, 'retune'), a.limit, true))),
      a.limit ? meter(Math.min(1, a.working / a.limit)) : null, a.parked_why ? h('p', { class: 'said' }, /^by hand/.test(a.parked_why) ? null : h('span', { class: 'dim' }, 'The provider says: '), a.parked_why) : null,
      drawn ? c.el : h('p', { class: 'dim none' }, a.starved ? 'The machine has too little processor time: time-outs now say nothing about the API. Nobody limits this account, so there is nothing to draw.' : a.limit ? 'The limit has not changed.' : 'Nobody limits this account.'),
      ch.length ? changes(ch, 4) : null);
  };
  const draw = () => {
    const t = world.tree, rows = t.breakers.map(b => h('tr', {}, h('td', {}, state(b.state === 'closed' ? 'ready' : b.state, spaced(b.state))), h('td', {}, h('code', {}, b.name), h('div', { class: 'dim' }, spaced(b.kind))), h('td', { class: 'n' }, b.failures), h('td', { class: 'n' }, b.held || '·'), h('td', { class: 'n' }, zero(b.next_probe) ? '·' : live(() => { const d = Date.parse(b.next_probe) - now(); return d > 0 ? 'in ' + dur(d) : 'due'; })), h('td', { class: 'n' }, b.starts_per_second ? b.starts_per_second + ' / s' : '·'), zero(b.since) ? h('td', { class: 'n' }, '·') : h('td', { class: 'n', title: exact(b.since) }, live(() => dur(now() - Date.parse(b.since)))), h('td', { class: 'fail' }, b.last_failure)));
    set(cards, t.accounts.length ? t.accounts.map(card) : empty('No account was used', 'An account appears with the first job that names one, or with the first agent of a job.'));
    set(breakers, rows.length ? h('div', { class: 'wide' }, h('table', { class: 'tab' }, h('thead', {}, h('tr', {}, ['state', 'program', 'failures', 'held', 'probe', 'rate', 'since', 'last failure'].map((x, i) => h('th', { scope: 'col', class: i > 1 && i < 7 ? 'n' : '' }, x)))), h('tbody', {}, rows))) : empty('All closed', 'No program has failed to start.'));
  };
  root.append(head('Accounts', sub('limits, parking, breakers, starvation')), cards, panel('Breakers', 'those that were not needed yet are missing', breakers));
  draw();
  let n = 0;
  const again = calm(() => { if (!root.querySelector('.accs .btn:hover, .accs :focus-visible, .chart:hover')) tree().then(draw, () => {}); }, 1500);
  return { title: 'Accounts', resync: again, tick(type, d) { if (type === 'tick' && ++n % 5 === 0 || type === 'event' && /Breaker|Account|Park|Retun|Steer/i.test(d.type)) again(); } };
}
