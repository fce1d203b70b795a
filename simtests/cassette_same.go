package simtests

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// sameness knows which ids of a recording stand for which of a replay.
type sameness struct {
	ids  map[string]string // of the replay, by those recorded
	back map[string]string
}

func newSameness() *sameness {
	return &sameness{ids: make(map[string]string), back: make(map[string]string)}
}

var (
	uuidLike = regexp.MustCompile(`^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	timeKey  = regexp.MustCompile(`(?i)(?:^|_)(?:at|time|timestamp|ms|elapsed|duration)$|Ms$|At$|Time$|timestamp$`)
)

// mostDifferences is how many are shown.
const mostDifferences = 10

// differ says where two values differ; "" if they do not.
func (s *sameness) differ(path string, want, got any) string {
	var all []string
	s.walk(path, "", want, got, &all)
	if len(all) > mostDifferences {
		all = append(all[:mostDifferences], fmt.Sprintf("\tand %d more", len(all)-mostDifferences))
	}
	return strings.Join(all, "\n")
}

func (s *sameness) walk(path, key string, want, got any, all *[]string) {
	note := func(want, got string) {
		*all = append(*all, fmt.Sprintf("\t%s\n\t\t- %s\n\t\t+ %s", path, want, got))
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(w)
		maps.Copy(keys, g)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			at := path + "." + k
			switch _, had := w[k]; {
			case !had:
				*all = append(*all, fmt.Sprintf("\t%s\n\t\t+ %s", at, inWords(g[k])))
			case !contains(g, k):
				*all = append(*all, fmt.Sprintf("\t%s\n\t\t- %s", at, inWords(w[k])))
			default:
				s.walk(at, k, w[k], g[k], all)
			}
		}
		return
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		for i := range max(len(w), len(g)) {
			at := fmt.Sprintf("%s[%d]", path, i)
			switch {
			case i >= len(w):
				*all = append(*all, fmt.Sprintf("\t%s\n\t\t+ %s", at, inWords(g[i])))
			case i >= len(g):
				*all = append(*all, fmt.Sprintf("\t%s\n\t\t- %s", at, inWords(w[i])))
			default:
				s.walk(at, key, w[i], g[i], all)
			}
		}
		return
	case string:
		if g, ok := got.(string); ok && s.sameText(key, w, g) {
			return
		}
	case float64:
		if _, ok := got.(float64); ok && timeKey.MatchString(key) {
			return
		}
	}
	if !reflect.DeepEqual(want, got) {
		note(inWords(want), inWords(got))
	}
}

func contains(m map[string]any, key string) bool { _, ok := m[key]; return ok }

// sameText compares texts, and keeps which ids stand for which.
func (s *sameness) sameText(key, want, got string) bool {
	if uuidLike.MatchString(want) && uuidLike.MatchString(got) || key == "request_id" {
		if had, ok := s.ids[want]; ok {
			return had == got
		}
		if had, ok := s.back[got]; ok {
			return had == want
		}
		s.ids[want], s.back[got] = got, want
		return true
	}
	if want == got {
		return true
	}
	return timeKey.MatchString(key) && isTime(want) && isTime(got)
}

func isTime(s string) bool {
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}

// actual is a recorded line with the ids of this replay.
func (s *sameness) actual(line string) string {
	pairs := make([]string, 0, 2*len(s.ids))
	for _, id := range slices.Sorted(maps.Keys(s.ids)) {
		if id != "" && id != s.ids[id] {
			pairs = append(pairs, `"`+id+`"`, `"`+s.ids[id]+`"`)
		}
	}
	return strings.NewReplacer(pairs...).Replace(line)
}

func inWords(v any) string {
	raw, err := protocol.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return short(string(raw))
}
