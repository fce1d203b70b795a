package simtests

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// ends holds the result of a turn against the turn: what it says of its use is what the
// answers of the model have used, its calls have their results, and none of its commands
// still runs. mu is held.
func (m *mind) ends(in *frame, subtype string) (wrong []string) {
	own := slices.DeleteFunc(slices.Clone(m.turn), func(n int) bool { return m.w.loops.answers[n].agent != "" })
	if whole, all := m.wholeOf(own); subtype == "error_max_turns" && all < m.turns {
		wrong = append(wrong, fmt.Sprintf("limits: %s ends the turn at %d answers, and MaxTurns is %d", m.lane, all, m.turns))
	} else if m.turns > 0 && whole > m.turns {
		wrong = append(wrong, fmt.Sprintf("limits: the turn of %s had %d answers, and MaxTurns is %d", m.lane, whole, m.turns))
	}
	for _, id := range m.order {
		u := m.uses[id]
		if u == nil || u.message == "" || u.results > 0 || m.aside[u.agent] {
			continue
		}
		if u.agent != "" { // its result may be missing, if it was stopped
			delete(m.uses, id)
			continue
		}
		if !in.IsError || in.Terminal == "aborted_tools" { // an interrupt gives each call a result
			wrong = append(wrong, fmt.Sprintf("results: the turn of %s ends, and the call %s has no result", m.lane, id))
		}
		delete(m.uses, id) // it is over with the turn
	}
	if left := m.running(false); len(left) > 0 {
		wrong = append(wrong, fmt.Sprintf("tasks: %s writes the result of a turn, and these commands run: %s", m.lane, strings.Join(left, ", ")))
	}
	m.all = append(m.all, m.turn...)
	for _, n := range m.all {
		if a := m.w.loops.answers[n]; a.open && !m.aside[a.agent] {
			wrong = append(wrong, fmt.Sprintf("tasks: %s writes the result of a turn, and reads the answer %d of the model", m.lane, n))
		}
	}
	wrong = append(wrong, m.used("the turn", own, in.Usage.Input, in.Usage.Output, in.Usage.CacheRead)...)
	var all tokens
	cost := 0.0
	for _, name := range sortedKeys(in.ByModel) {
		u := in.ByModel[name]
		all.Input, all.Output, all.CacheRead = all.Input+u.InputOf, all.Output+u.OutputOf, all.CacheRead+u.CacheReadOf
		cost += u.CostOf
	}
	if len(in.ByModel) > 0 {
		wrong = append(wrong, m.used("the process", m.all, all.Input, all.Output, all.CacheRead)...)
		if diff := cost - in.Cost; diff > 1e-9 || diff < -1e-9 {
			wrong = append(wrong, fmt.Sprintf("usage: %s says that it has cost %v, and its models %v", m.lane, in.Cost, cost))
		}
	}
	m.turn, m.cut = nil, false
	return wrong
}

// estimated are the most tokens of an answer that broke off which the agent may estimate.
const estimated = 64

// used holds what a result says against the answers. An answer that was read and has no
// block, and one that broke off or that an interrupt met, may count or not.
func (m *mind) used(of string, answers []int, input, output, cached int) []string {
	var least, most model.Usage
	add := func(to *model.Usage, u model.Usage) {
		to.Input, to.Output, to.CacheRead = to.Input+u.Input, to.Output+u.Output, to.CacheRead+u.CacheRead
	}
	for _, n := range answers {
		a := m.w.loops.answers[n]
		switch {
		case a.framed && a.whole:
			add(&least, a.usage)
			add(&most, a.usage)
		case a.framed || a.whole:
			add(&most, a.usage)
		default: // it broke off: what it said of its use by then may count, and the agent estimates the rest
			add(&most, a.usage)
		}
		if !a.whole {
			most.Output += estimated
		}
	}
	if input < least.Input || input > most.Input || output < least.Output || output > most.Output || cached < least.CacheRead || cached > most.CacheRead {
		return []string{fmt.Sprintf("usage: %s says that %s has used %d, %d and %d tokens, and its answers at least %d, %d and %d and at most %d, %d and %d", m.lane, of,
			input, output, cached, least.Input, least.Output, least.CacheRead, most.Input, most.Output, most.CacheRead)}
	}
	return nil
}

// wholeOf counts the answers that came whole. all has in addition those that broke off and
// stay in the conversation.
func (m *mind) wholeOf(answers []int) (whole, all int) {
	for _, i := range answers {
		a := m.w.loops.answers[i]
		if a.aside {
			continue
		}
		if a.whole {
			whole++
		}
		if a.whole || a.framed {
			all++
		}
	}
	return whole, all
}

// within checks that the money for a request is there. An answer to another agent of the session
// may come between the decision and the request.
func (m *mind) within(r *modeltest.Request) {
	m.w.mu.Lock()
	_, agent := sessionOf(r.User)
	now := m.w.sched.Now()
	spent := m.spent(func(a *answered) bool { return a.agent == agent || a.at.Before(now) })
	own := m.spent(func(a *answered) bool { return a.agent == agent || a.at.Before(now) && m.tally.below(a.agent, agent) })
	share := m.tally.shares[agent]
	over := m.budget > 0 && spent >= m.budget
	greedy := m.budget > 0 && agent != "" && own > share+1e-9
	m.w.mu.Unlock()
	if over {
		m.w.Errorf("limits: %s makes request %d when %v of %v US dollars are spent", m.lane, r.N, spent, m.budget)
	}
	if greedy {
		m.w.Errorf("limits: %s makes request %d for a sub-agent that has spent %v US dollars, and has at most %v", m.lane, r.N, own, share)
	}
}

// spent is what answers have cost that the agent has written, in US dollars; mu is held.
func (m *mind) spent(of func(*answered) bool) (dollars float64) {
	for _, i := range slices.Concat(m.all, m.turn) {
		a := m.w.loops.answers[i]
		if price := m.profiles().Model(a.model).Price; a.whole && a.framed && price != nil && (of == nil || of(a)) {
			dollars += price.Cost(a.usage)
		}
	}
	return dollars
}

// profiles are those of the agent's models.
func (m *mind) profiles() *model.Profiles {
	if p := m.e.Config.Profiles; p != nil {
		return p
	}
	return m.w.loops.profiles
}

// below reports whether a sub-agent is one that another one has started.
func (t *tally) below(agent, of string) bool {
	for up := t.up[agent]; up != ""; up = t.up[up] {
		if up == of {
			return true
		}
	}
	return false
}

// numberIn is the number of an answer by its id; 0: it is not one of the server's.
func numberIn(id string) int {
	_, text, _ := strings.Cut(strings.Replace(id, "chatcmpl-", "chatcmpl_", 1), "_")
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
