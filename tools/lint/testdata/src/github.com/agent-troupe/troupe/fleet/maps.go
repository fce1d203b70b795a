package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

type job struct {
	id    string
	state int
	cost  float64
	tags  []string
	stamp time.Time
	timer *time.Timer
}

func (j *job) label() string { return j.id + "!" }

// tally only computes.
func tally(j *job) (out map[string]int) {
	sum := 0
	for _, t := range j.tags {
		sum += len(t)
		if out == nil {
			out = map[string]int{}
		}
	}
	return out
}

// mark changes what it is given.
func mark(j *job) int {
	j.state++
	return j.state
}

func (j *job) stop() { j.state = 2 }

func seen(m map[string]*job, ch chan string, w io.Writer, stop map[string]func()) error {
	for k := range m { // want `it sends on a channel; range over slices.Sorted`
		ch <- k
	}
	for k := range m { // want `it calls Fprintln`
		fmt.Fprintln(w, k)
	}
	for _, j := range m { // want `it calls stop`
		j.stop()
	}
	for _, f := range stop { // want `it calls f`
		f()
	}
	for _, j := range m { // want `it calls Encode`
		if err := json.NewEncoder(w).Encode(j); err != nil {
			return err
		}
	}
	var b strings.Builder
	for k := range m { // want `it calls WriteString`
		b.WriteString(k)
	}
	for k := range m { // want `it starts goroutines`
		go fmt.Println(k)
	}
	for k := range maps.Keys(m) { // want `it sends on a channel`
		ch <- k
	}
	for _, c := range map[int]chan int{} { // want `it calls close`
		close(c)
	}
	for k, j := range m { // want `it returns the first element it meets`
		if j.state > 1 {
			return fmt.Errorf("job %s", k)
		}
	}
	return nil
}

func kept(m map[string]*job) (string, []string, []string, float64) {
	last, text := "", ""
	var names, others []string
	sum := 0.0
	for k := range m { // want `it keeps the last element in last`
		last = k
	}
	for k := range m { // want `it appends to names, which nothing sorts afterwards`
		names = append(names, k)
	}
	for k := range m { // want `it joins strings`
		text += k
	}
	for _, j := range m { // want `it adds up floating-point numbers`
		sum += j.cost
	}
	for k := range m { // sorted behind it
		others = append(others, k)
	}
	sort.Strings(others)
	return last + text, names, others, sum
}

func fine(m map[string]*job, wanted string) (*job, int, []string) {
	copied, count, open, top, low := map[string]*job{}, 0, false, 0, 0
	index := map[string][]string{}
	for k, j := range m {
		copied[k] = j
		index[j.id] = append(index[j.id], j.label())
		index[fmt.Sprintf("%d", j.state)] = nil
		count++
		count += len(j.tags)
		j.state = 3
		if strings.HasPrefix(k, "x") {
			delete(m, k)
		}
		if j.state == 1 {
			open = true
		}
		if j.state > top {
			top = j.state
		}
		low = min(low, j.state)
		local := k
		local += "!"
	}
	for k, j := range m {
		if k == wanted {
			return j, 0, nil
		}
	}
	for _, j := range m {
		if j.state > 2 {
			return nil, 1, nil
		}
	}
	tags := []string{}
	for _, t := range tags { // not a map
		fmt.Println(t)
	}
	_ = open
	return nil, count + top, slices.Sorted(maps.Keys(m))
}

func folds(m map[string]*job, at map[string]time.Time) (bool, time.Time) {
	any, first, dirty := false, time.Time{}, false
	for _, j := range m {
		any = any || j.state > 1
		j.stamp = j.stamp.Add(time.Second)
	}
	for _, t := range at {
		if limit := t.Add(time.Second); first.IsZero() || limit.Before(first) {
			first = limit
		}
	}
	sizes := map[string]int{}
	for k, j := range m {
		sizes[k] = len(tally(j))
	}
	for k, j := range m { // want `it calls mark`
		sizes[k] = mark(j)
	}
	for _, j := range m { // want `it keeps the last element in dirty`
		dirty = j.state > 1
	}
	for _, j := range m { // want `it calls Stop`
		j.timer.Stop()
	}
	return any || dirty || slices.ContainsFunc(slices.Collect(maps.Values(m)), func(j *job) bool { return j.state > 1 }), first
}

func iterators(m map[string]int) []string {
	_ = slices.Collect(maps.Keys(m)) // want `maps.Keys has no order`
	keys := slices.Collect(maps.Keys(m))
	slices.Sort(keys)
	values := slices.Collect(maps.Values(m)) // want `maps.Values has no order`
	_ = values
	_ = maps.Collect(maps.All(m))
	var sm sync.Map
	sm.Range(func(k, v any) bool { return true }) // want `sync.Map.Range has no order`
	return keys
}

func allowed(m map[string]*job) {
	//troupe:maporder stopping is idempotent, and no two jobs know of each other
	for _, j := range m {
		j.stop()
	}
	//troupe:maporder counting only // want `allows nothing`
	for range m {
	}
}

func closures(m map[string]*job) []func() string {
	out := make(map[string]func() string)
	for k := range m {
		out[k] = func() string { return k } // leaves the closure, not the loop
	}
	return nil
}
