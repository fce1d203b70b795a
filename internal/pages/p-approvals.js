// Calls that wait for a person.
import { h, set, dur, clock, exact, glyph, kbd, empty, diff } from './ui.js';
import { world, now, approvals as fetched, settled, post, seg, onHost, address, jobAddress } from './api.js';
import { live, act, toast, head } from './parts.js';
import { brief, edited } from './transcript.js';

export const load = () => fetched();

export default function approvals(root, p, go) {
  const list = h('ul', { class: 'alist', role: 'listbox', 'aria-label': 'Calls that wait', tabindex: 0 }), detail = h('div', { class: 'adetail' });
  let sel = null, taken = null, changed = -1e9, keys = null;
  const items = () => world.approvals || [];
  const moved = () => { changed = performance.now(); };
  const settling = () => performance.now() - changed < 400; // the list has just moved under the finger
  const place = a => 'ap' + items().indexOf(a);
  const drawList = () => {
    set(list, items().map(a => h('li', { role: 'option', id: place(a), 'aria-selected': a === sel, class: 'aitem', on: { click: () => { if (!settling()) { sel = a; taken = null; draw(); } } } }, h('span', { class: 'r-person' }, glyph('person')), h('b', { class: 'nm' }, a.task || a.title || a.session), h('span', { class: 'n dim age', title: exact(a.at) }, live(() => dur(now() - Date.parse(a.at)))), h('code', { class: 'brief' }, a.tool + ' ' + (a.input ? brief(a.tool, a.input) : '')))), world.decided.slice(0, 5).map(d => h('li', { class: 'aitem was', role: 'option', 'aria-disabled': true, 'aria-selected': false }, glyph(d.gone ? 'over' : d.ok ? 'good' : 'bad'), h('b', { class: 'nm' }, d.call.task || d.call.session), h('span', { class: 'n dim age' }, clock(d.at)), h('span', { class: 'dim brief' }, said(d)))));
    sel && !taken ? list.setAttribute('aria-activedescendant', place(sel)) : list.removeAttribute('aria-activedescendant');
  };
  const said = d => d.gone ? 'answered elsewhere, or gone' : (d.ok ? 'allowed' : 'denied') + ' by ' + (d.by === world.who ? 'you' : d.by) + (d.reason ? ': ' + d.reason : '');
  const draw = () => {
    const other = world.decided.find(d => d.call === sel);
    if (other) taken = other; // stays in view: the selection never jumps to another call
    if (!sel || !taken && !items().includes(sel)) { sel = items()[0] || null; taken = null; }
    drawList(); drawDetail();
  };
  const answer = async (allow, body) => {
    if (settling()) return;
    const a = sel;
    try {
      const d = await post(onHost('api/approvals/' + seg(a.id), a.host), { allow, ...body });
      settled(a, { allow, who: world.who || 'you', reason: body.reason, ...d });
      toast((allow ? 'Allowed once: ' : 'Denied: ') + a.tool + ' of ' + (a.task || a.session), allow ? 'good' : 'bad');
      sel = null;
    } catch (e) {
      if (e.status === 409) settled(a, { allow: false, ...e.body });
      else if (e.status === 410) settled(a, { gone: true });
      else throw e;
      toast(e.status === 409 ? 'Somebody was first. Nothing of yours counts.' : 'The call is gone: its task is over.', 'bad');
    }
    draw(); list.focus(); moved();
  };
  const drawTaken = () => {
    keys = null;
    const next = act('Next call', '', () => { sel = null; taken = null; draw(); list.focus(); }, '', true);
    set(detail, h('div', { class: 'empty' }, glyph(taken.gone ? 'over' : taken.ok ? 'good' : 'bad'), h('b', {}, taken.gone ? 'This call does not wait any more' : `${taken.by} has ${taken.ok ? 'allowed' : 'denied'} this call`), h('p', {}, taken.reason ? '“' + taken.reason + '” ' : '', taken.gone ? 'It was answered elsewhere, withdrawn, or its task is over.' : 'One answer counts. Nothing of yours was sent.'), h('pre', { class: 'cmd' }, sel.input?.command || sel.tool), next));
  };
  const drawDetail = () => {
    if (!sel) { keys = null; return set(detail, empty('Nothing waits for a person', 'Calls that no rule decides appear here, oldest first. You can leave the page open: the title shows their number.')); }
    if (taken) return drawTaken();
    const a = sel, input = a.input, patch = a.diff || edited(input)?.patch, hold = a.hold_until ? Date.parse(a.hold_until) : 0, can = a.answer !== false;
    const edit = h('textarea', { class: 'mono', rows: 5, hidden: true, spellcheck: 'false', 'aria-label': 'Changed input as JSON' }), area = h('textarea', { class: 'reason', rows: 2, placeholder: 'Why not? The model reads this and goes on.', 'aria-label': 'Reason of the denial' });
    const allow = act('Allow once', 'a', async () => {
      if (edit.hidden) return answer(true, {});
      let changed; try { changed = JSON.parse(edit.value); } catch (e) { return toast('Not sent: the input is no JSON: ' + e.message, 'bad'); }
      await answer(true, { input: changed });
    }, 'good');
    const refuse = () => answer(false, { reason: area.value.trim() });
    const deny = act('Deny', 'd', () => area.value.trim() || area.asked ? refuse() : (area.asked = true, area.focus()), 'danger');
    const change = act('Allow with changes', 'e', () => { edit.hidden = !edit.hidden; edit.value = JSON.stringify(input ?? {}, null, 2); if (!edit.hidden) edit.focus(); });
    const armed = h('span', { class: 'armed', hidden: true, role: 'status' }, kbd('↵'), ' allows this one call, once');
    area.addEventListener('keydown', e => { if (e.key === 'Enter' && !e.shiftKey) { e.preventDefault(); if (world.steer && world.link === 'live') refuse().catch(x => toast(x.message, 'bad')); } });
    allow.addEventListener('focus', () => { armed.hidden = false; }); allow.addEventListener('blur', () => { armed.hidden = true; });
    const before = [a.before, a.said].flat().filter(Boolean), why = [];
    if (a.rule || a.rule_from || a.reason) why.push(['asked by', [a.rule ? [h('code', { class: 'rule' }, a.rule), ' '] : null, a.rule_from ? h('span', { class: 'dim' }, a.rule_from) : null, a.reason ? [h('br', {}), a.reason] : null]]);
    if (hold) why.push(['process', live(() => hold > now() ? 'kept for ' + dur(hold - now()) + ' more; an answer now goes to the agent at once' : 'given back ' + dur(now() - hold) + ' ago; an answer resumes the session, and the model must make the same call again')]);
    if (a.cwd) why.push(['directory', h('code', {}, a.cwd)]);
    if (before.length) why.push(['before', h('div', { class: 'quote' }, before.map(b => h('p', {}, b)))]);
    why.push(['call', input == null ? [h('span', { class: 'dim' }, 'Its input is not shown: this window was opened without Access.Content. '), 'id ', h('code', {}, a.id.split(':').at(-1).slice(0, 8))] : h('details', { class: 'fold' }, h('summary', {}, 'whole input · id ', h('code', {}, a.id.split(':').at(-1).slice(0, 8))), h('pre', {}, JSON.stringify(input, null, 2)))]);
    set(detail, h('header', {}, h('h2', {}, h('code', {}, a.tool)), h('span', { class: 'dim' }, 'of '), a.session ? h('a', { class: 'nm', href: address({ id: a.session, host: a.host }) }, a.task || a.session) : h('b', { class: 'nm' }, a.task), a.job ? h('a', { class: 'dim nm', href: jobAddress(a.job, a.host) }, a.job) : null, h('span', { class: 'dim n' }, a.attempt > 1 ? 'attempt ' + a.attempt : ''), h('span', { class: 'grow' }), h('span', { class: 'n', title: exact(a.at) }, 'waits ', live(() => dur(now() - Date.parse(a.at))))),
      input?.command ? h('pre', { class: 'cmd sh big-cmd' }, input.command) : null, patch ? diff(patch) : null, input != null && !input.command && !patch ? h('pre', { class: 'cmd' }, JSON.stringify(input, null, 2)) : null, input?.description ? h('p', { class: 'said' }, h('span', { class: 'dim' }, 'The model says: '), input.description) : null,
      h('dl', { class: 'why' }, why.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v)))),
      can ? h('div', { class: 'answer' }, edit, h('div', { class: 'abtns' }, allow, input == null ? null : change, h('span', { class: 'grow' }), armed), h('div', { class: 'dbox' }, area, deny)) : h('p', { class: 'answer dim' }, 'This call can be seen here, but not answered: its session asks another function of its host.'));
    keys = can ? { a: () => allow.focus(), d: () => area.focus(), e: () => change.click() } : null;
    if (!world.steer) { area.disabled = true; area.placeholder = 'Read-only: this window cannot answer.'; }
  };
  root.append(head('Approvals', live(() => items().length + (items().length === 1 ? ' waits' : ' wait')), h('span', { class: 'grow' }), h('span', { class: 'keys dim' }, kbd('j', 'k'), ' move ', kbd('a'), kbd('↵'), ' allow ', kbd('d'), ' deny with a reason')), h('div', { class: 'cols two' }, h('div', { class: 'panel' }, list), h('div', { class: 'panel pad' }, detail)));
  draw();
  return {
    title: 'Approvals',
    // The list is known again; the call that is looked at stays, as long as it waits.
    async resync() { await fetched().catch(() => {}); const same = items().find(a => a.id === sel?.id); if (same && !taken) { sel = same; drawList(); } else draw(); moved(); },
    tick(type, d) {
      if (type === 'approval') { if (sel) drawList(); else draw(); moved(); }
      if (type === 'decided') { if (sel && (taken || d.id !== sel.id)) drawList(); else draw(); moved(); }
    },
    key(e) {
      const k = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[e.key], all = items();
      if (settling() && (keys?.[e.key] || e.key === 'Enter' || k)) return true;
      if (k && all.length) { sel = all[Math.max(0, Math.min(all.length - 1, all.indexOf(sel) + k))]; taken = null; draw(); document.getElementById(place(sel))?.scrollIntoView({ block: 'nearest' }); } else if (sel && keys?.[e.key]) { if (!world.steer) toast('Read-only: this window cannot answer.', 'person'); else keys[e.key](); } else if (e.key === 'Enter' && sel?.session) go(address({ id: sel.session, host: sel.host })); else return false;
      return true;
    },
  };
}
