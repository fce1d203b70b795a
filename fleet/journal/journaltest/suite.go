package journaltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
)

// Place is where one journal is kept.
type Place struct {
	Create func(journal.Header) (journal.Journal, error)
	Open   func() (journal.Journal, error)
}

// Run tests that journals keep the promises of journal.Journal. place returns an empty
// place.
func Run(t *testing.T, place func(*testing.T) Place) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, Place)
	}{
		{"records come back", recordsComeBack},
		{"one owner", oneOwner},
		{"create and open", createAndOpen},
		{"many writers", manyWriters},
		{"closed", closed},
		{"a record that is no JSON", notEncodable},
		{"nothing", appendNothing},
		{"a journal that goes on", goesOn},
		{"odd names and large texts", oddContent},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, place(t))
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
		t.FailNow()
	}
}

func fails(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("the error is %v, not %v", err, want)
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, not %v", what, got, want)
	}
}

func compacted(t *testing.T, raw json.RawMessage) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, json.Compact(&b, raw))
	return b.Bytes()
}

func header() journal.Header {
	return journal.Header{Job: "nightly", Tasks: "abc", Host: "here", PID: 7}
}

func rec(n int) journal.Record {
	return journal.Record{
		At: time.Unix(int64(n), 0).UTC(), Kind: "result", Task: fmt.Sprint("t", n), Attempt: n,
		Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)),
	}
}

func sameRecords(t *testing.T, j journal.Journal, want ...journal.Record) {
	t.Helper()
	got := j.Records()
	if len(got) != len(want) {
		t.Fatalf("%d records, not %d", len(got), len(want))
	}
	for i := range want {
		want[i].Seq = uint64(i) + 1
		g, w := got[i], want[i]
		if !g.At.Equal(w.At) || !bytes.Equal(compacted(t, g.Data), compacted(t, w.Data)) {
			t.Errorf("record %d is %+v, not %+v", i, g, w)
		}
		g.At, g.Data, w.At, w.Data = time.Time{}, nil, time.Time{}, nil
		same(t, fmt.Sprint("record ", i), fmt.Sprintf("%+v", g), fmt.Sprintf("%+v", w))
	}
}

func recordsComeBack(t *testing.T, p Place) {
	j, err := p.Create(header())
	must(t, err)
	same(t, "records", len(j.Records()), 0)
	must(t, j.Append(t.Context(), rec(1), rec(2)))
	must(t, j.Append(t.Context(), rec(3)))
	must(t, j.Close())
	j, err = p.Open()
	must(t, err)
	h := j.Header()
	if h.Format == 0 {
		t.Error("the header has no format")
	}
	h.Format = 0
	same(t, "header", h, header())
	sameRecords(t, j, rec(1), rec(2), rec(3))
	must(t, j.Close())
}

func oneOwner(t *testing.T, p Place) {
	j, err := p.Create(header())
	must(t, err)
	_, err = p.Open()
	fails(t, err, journal.ErrLocked)
	_, err = p.Create(header())
	fails(t, err, journal.ErrLocked)
	must(t, j.Close())
	j, err = p.Open()
	must(t, err)
	must(t, j.Close())
}

func createAndOpen(t *testing.T, p Place) {
	_, err := p.Open()
	fails(t, err, journal.ErrMissing)
	j, err := p.Create(header())
	must(t, err)
	must(t, j.Close())
	_, err = p.Create(header())
	fails(t, err, journal.ErrExists)
	j, err = p.Open()
	must(t, err)
	must(t, j.Close())
}

func manyWriters(t *testing.T, p Place) {
	j, err := p.Create(header())
	must(t, err)
	const writers, each = 16, 20
	var all sync.WaitGroup
	for w := range writers {
		//troupe:seam the writers of a test
		all.Go(func() {
			for n := range each {
				r := rec(n + 1)
				r.Task = fmt.Sprint("writer", w)
				if err := j.Append(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	must(t, j.Close())
	j, err = p.Open()
	must(t, err)
	same(t, "records", len(j.Records()), writers*each)
	last := map[string]int{}
	for _, r := range j.Records() {
		same(t, "the next record of "+r.Task, r.Attempt, last[r.Task]+1)
		last[r.Task] = r.Attempt
	}
	must(t, j.Close())
}

func closed(t *testing.T, p Place) {
	j, err := p.Create(header())
	must(t, err)
	must(t, j.Close())
	must(t, j.Close())
	fails(t, j.Append(t.Context(), rec(1)), journal.ErrClosed)
}

func notEncodable(t *testing.T, p Place) {
	j, err := p.Create(header())
	must(t, err)
	bad := rec(2)
	bad.Data = json.RawMessage(`{`)
	if j.Append(t.Context(), rec(1), bad) == nil {
		t.Error("a record that is no JSON was taken")
	}
	must(t, j.Append(t.Context(), rec(3))) // the mistake of one call is not a failure of the journal
	must(t, j.Close())
	j, err = p.Open()
	must(t, err)
	sameRecords(t, j, rec(3))
	must(t, j.Close())
}

func appendNothing(t *testing.T, p Place) {
	j, err := p.Create(header())
	must(t, err)
	must(t, j.Append(t.Context()))
	must(t, j.Close())
}

func goesOn(t *testing.T, p Place) {
	j, err := p.Create(header())
	must(t, err)
	var want []journal.Record
	for n := range 5 {
		must(t, j.Append(t.Context(), rec(n)))
		want = append(want, rec(n))
		must(t, j.Close())
		j, err = p.Open()
		must(t, err)
		sameRecords(t, j, want...)
	}
	must(t, j.Close())
}

func oddContent(t *testing.T, p Place) {
	j, err := p.Create(header())
	must(t, err)
	odd := rec(1)
	odd.Task = "a\nb\"<>&\u2028 é\x00"
	long, err := json.Marshal(string(make([]byte, 100_000)) + `","crc":"00000000"}`)
	must(t, err)
	odd.Data = long
	must(t, j.Append(t.Context(), odd))
	must(t, j.Close())
	j, err = p.Open()
	must(t, err)
	sameRecords(t, j, odd)
	must(t, j.Close())
}
