package runtime_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// TestNoiseBetweenFrames writes every kind of line that is not a frame, before, between
// and after frames.
func TestNoiseBetweenFrames(t *testing.T) {
	t.Parallel()
	noise := []string{
		`{"type":"assistant"`, `{"type":"assistant"}}`, `{broken`, `}`, `{"a":1}{"b":2}`, `{"a":1} tail`, `{"a":"open`,
		`null`, `true`, `42`, `-1.5e300`, `"x"`, `"{}"`, `[]`, `[{"type":"result"}]`,
		"plain words", "[WARN] {not quite}", "\x00\x01\xff\xfe", "\ufeff{}", strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000),
	}
	silent := []string{"", " ", "\t \t", "\r", "\r\r", "\v\f"}
	onStages(t, func(s *stage) {
		var wrote []string
		spec := s.spec(func(h *hand) {
			uuid := h.prompt()
			for i, junk := range append(noise, silent...) {
				wrote = append(wrote, assistantLine(i, 10))
				h.say(junk, wrote[i], junk)
			}
			wrote = append(wrote, resultLine(uuid))
			h.say(wrote[len(wrote)-1], "null")
		})
		spec.Options.Graces.EOF = patience // the last line is written while the session is closed
		log := listen(&spec)
		sess := s.open(spec)
		turn := s.send(sess)
		assert.Equal(s, wrote, append(s.read(turn), []string{}...), "ordered-lossless")
		s.close(sess)
		var heads []string
		for _, e := range reported[*session.NoiseLine](s, log) {
			var bad *protocol.FrameError
			require.ErrorAs(s, e.Err, &bad)
			heads = append(heads, string(bad.Head))
		}
		var want []string
		for _, junk := range noise {
			head := junk[:min(len(junk), 256)]
			want = append(want, head, head)
		}
		assert.Equal(s, append(want, "null"), heads)
	})
}

// TestLineEndings ends lines in every way, and the last one not at all.
func TestLineEndings(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "blank lines": "\n\n \n\r\n", "white space": " \t\r\n  "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStages(t, func(s *stage) {
				var wrote []string
				spec := s.spec(func(h *hand) {
					wrote = []string{assistantLine(1, 10), partialLine(2, 10), resultLine(h.prompt())}
					h.write([]byte(strings.Join(wrote, end)))
					panic(exited{})
				})
				spec.Options.Graces.Output = patience
				sess := s.open(spec)
				turn := s.send(sess)
				assert.Equal(s, wrote, s.read(turn))
				r, err := turn.Result(s.ctx)
				require.NoError(s, err)
				assert.Equal(s, "done", r.Result)
				s.await(sess.Done())
				var exit *session.ExitError
				require.ErrorAs(s, sess.Err(), &exit, "it left by itself")
				assert.Equal(s, "idle", exit.During)
			})
		})
	}
}

// mixed is a text with characters and escapes of every length.
const mixed = `a\u00e9é€😀\ud83d\ude00\\\"\n\u0000\/` + "\u2028ß\U0010FFFF\u0301"

// TestSplitAnywhere cuts a line in two at every byte, so that the host reads
// each half by itself.
func TestSplitAnywhere(t *testing.T) {
	t.Parallel()
	line := `{"type":"assistant","uuid":"u","message":{"role":"assistant","content":[{"type":"text","text":"` + mixed + `"}]}}`
	inSimulation(t, 1, runtime.Config{}, func(s *stage) {
		sess := s.open(s.spec(func(h *hand) {
			uuid := h.prompt()
			for cut := range line {
				h.write([]byte(line[:cut]))
				h.pass(time.Nanosecond) // by then it was read
				h.write([]byte(line[cut:] + "\n"))
			}
			h.say(resultLine(uuid))
		}))
		turn, n := s.send(sess), 0
		for m, err := range turn.Messages(s.ctx) {
			require.NoError(s, err)
			if a, ok := m.(*protocol.AssistantMessage); ok {
				n++
				require.Equal(s, line, string(a.Raw()))
				require.Equal(s, "aéé€😀😀\\\"\n\x00/\u2028ß\U0010FFFF\u0301", protocol.TextOf(a))
			}
		}
		assert.Equal(s, len([]rune(line)), n)
		s.close(sess)
	})
}

// TestAnyBytesInAnyPieces writes random frames and noise in random pieces.
func TestAnyBytesInAnyPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(rapid.OneOf(
			rapid.Map(rapid.IntRange(0, 5000), func(n int) string { return assistantLine(n, n) }),
			rapid.Map(rapid.IntRange(0, 90), func(n int) string { return partialLine(n, n) }),
			rapid.Map(rapid.String(), func(s string) string { return fmt.Sprintf(`{"type":"x","v":%q}`, strings.ToValidUTF8(s, "")) }),
			rapid.SampledFrom([]string{"", "null", "[", "\r", `{"type":"keep_alive"}`, "garbage \xff"}),
		), 1, 30).Draw(r, "lines")
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\n\n"}).Draw(r, "end")
		cuts := rapid.SliceOfN(rapid.IntRange(1, 3000), 1, 20).Draw(r, "pieces")
		wait := rapid.Bool().Draw(r, "wait")
		var want []string
		for _, line := range lines {
			if f, err := protocol.ParseFrame([]byte(line)); err == nil && f.Type != protocol.TypeKeepAlive {
				want = append(want, line)
			}
		}
		inSimulation(t, rapid.Uint64().Draw(r, "seed"), runtime.Config{}, func(s *stage) {
			sess := s.open(s.spec(func(h *hand) {
				last := resultLine(h.prompt())
				want = append(want, last)
				rest := []byte(strings.Join(append(lines, last, ""), end))
				for i := 0; len(rest) > 0; i++ {
					n := min(cuts[i%len(cuts)], len(rest))
					h.write(rest[:n])
					rest = rest[n:]
					if wait {
						h.pass(time.Nanosecond)
					}
				}
			}))
			require.Equal(r, want, s.read(s.send(sess)))
			s.close(sess)
		})
	})
}

// TestLinesUpToTheCeiling writes lines around the ceiling, whole and in pieces.
func TestLinesUpToTheCeiling(t *testing.T) {
	t.Parallel()
	const ceiling = 1000
	sizes := []int{ceiling - 1, ceiling, ceiling + 1, 2 * ceiling, 50 * ceiling, ceiling}
	for name, piece := range map[string]int{"whole": 1 << 20, "in pieces": 333, "to the byte": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStages(t, func(s *stage) {
				var fits []string
				spec := s.spec(func(h *hand) {
					uuid := h.prompt()
					var out []byte
					for i, size := range sizes {
						line := assistantLine(i, size-len(assistantLine(i, 0)))
						if len(line) != size {
							panic("the line is not as long as it should be")
						}
						out = append(append(out, line...), '\n')
						if size > ceiling {
							line = "" // a message without its line
						}
						fits = append(fits, line)
					}
					fits = append(fits, resultLine(uuid))
					out = append(append(out, resultLine(uuid)...), '\n')
					for len(out) > 0 {
						n := min(piece, len(out))
						h.write(out[:n])
						out = out[n:]
					}
				})
				spec.Options.MaxLine = ceiling
				log := listen(&spec)
				sess := s.open(spec)
				assert.Equal(s, fits, s.read(s.send(sess)))
				s.close(sess)
				over := reported[*session.OversizeLine](s, log)
				require.Len(s, over, 3, "one event for each line")
				for i, n := range []int64{ceiling + 1, 2 * ceiling, 50 * ceiling} {
					assert.Equal(s, n, over[i].Length)
					assert.Equal(s, ceiling, over[i].Ceiling)
					assert.True(s, strings.HasPrefix(over[i].Head, `{"type":"assistant"`), over[i].Head)
				}
			})
		})
	}
}

// TestLargeLines writes lines of 2 to 80 MiB. The ceiling is 64 MiB.
func TestLargeLines(t *testing.T) { // alone: it takes memory
	head, pad, tail := `{"type":"blob","v":"`, bytes.Repeat([]byte("x"), mib), `"}`
	pads := func(size int, each func([]byte)) { // of an unknown type, whose length costs no decoding
		for rest := size - len(head) - len(tail); rest > 0; rest -= mib {
			each(pad[:min(rest, mib)])
		}
	}
	sizes := []int{2 * mib, 20 * mib, 64 * mib, 64*mib + 1, 80 * mib, 2 * mib}
	onGoroutines(t, func(s *stage) {
		spec := s.spec(func(h *hand) {
			uuid := h.prompt()
			for _, size := range sizes {
				h.write([]byte(head))
				pads(size, h.write)
				h.say(tail)
			}
			h.say(resultLine(uuid))
		})
		log := listen(&spec)
		sess := s.open(spec)
		var got []int
		for m, err := range s.send(sess).Messages(s.ctx) {
			require.NoError(s, err)
			if u, ok := m.(*protocol.UnknownMessage); ok {
				got = append(got, len(u.Raw()))
				rest := u.Raw()[len(head):]
				pads(len(u.Raw()), func(want []byte) {
					assert.True(s, bytes.HasPrefix(rest, want), "the line was changed")
					rest = rest[len(want):]
				})
				assert.Equal(s, tail, string(rest))
			}
		}
		assert.Equal(s, []int{2 * mib, 20 * mib, 64 * mib, 2 * mib}, got)
		s.close(sess)
		over := reported[*session.OversizeLine](s, log)
		require.Len(s, over, 2)
		assert.Equal(s, []int64{64*mib + 1, 80 * mib}, []int64{over[0].Length, over[1].Length})
	})
}

// TestLargeLinesOfAProcess does it through a real pipe.
func TestLargeLinesOfAProcess(t *testing.T) { // alone: it takes memory
	onGoroutines(t, func(s *stage) {
		spec := processSpec(t, newID(), `turns: [{steps: [{huge: {bytes: 7MiB}}, {huge: {bytes: 20MiB}}, {text: after}]}]`)
		spec.Options.MaxLine = 8 * mib
		log := listen(&spec)
		sess := s.open(spec)
		turn := s.send(sess)
		var got []int
		for m, err := range turn.Messages(s.ctx) {
			require.NoError(s, err)
			if a, ok := m.(*protocol.AssistantMessage); ok {
				got = append(got, len(protocol.TextOf(a)))
			}
		}
		assert.Equal(s, []int{7 * mib, len("after")}, got)
		s.close(sess)
		assert.Len(s, reported[*session.OversizeLine](s, log), 1)
	})
}

// TestUnknownMessages writes what no version of any agent was seen to write.
func TestUnknownMessages(t *testing.T) {
	t.Parallel()
	lines := []struct{ line, typ, subtype string }{
		{`{"type":"hologram","uuid":"u","session_id":"s","parent_tool_use_id":"t","x":[1,{"y":null}]}`, "hologram", ""},
		{`{"type":"hologram","subtype":"blue"}`, "hologram", "blue"},
		{`{"type":"system","subtype":"hologram"}`, "system", "hologram"},
		{`{"type":"system"}`, "system", ""},
		{`{"no":"type"}`, "", ""},
		{`{}`, "", ""},
		{`{"type":null}`, "", ""},
		{`{"type":5}`, "", ""},
		{`{"type":["assistant"]}`, "", ""},
		{`{"type":"control_hologram","request_id":"x"}`, "control_hologram", ""},
		{`{"type":"Assistant"}`, "Assistant", ""},
		{`{"type":"assistant","message":5}`, "assistant", ""},
		{`{"type":"assistant","message":{"content":tru}}`, "assistant", ""},
		{`{"type":"user","message":{"role":7}}`, "user", ""},
		{`{"type":"system","subtype":"init","tools":"all"}`, "system", "init"},
		{`{"type":"assistant","deep":` + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + `}`, "assistant", ""},
	}
	onStages(t, func(s *stage) {
		sess := s.open(s.spec(func(h *hand) {
			uuid := h.prompt()
			for _, l := range lines {
				h.say(l.line)
			}
			h.say(resultLine(uuid))
		}))
		n := 0
		for m, err := range s.send(sess).Messages(s.ctx) {
			require.NoError(s, err)
			if n == len(lines) {
				assert.IsType(s, &protocol.ResultMessage{}, m)
				break
			}
			want := lines[n]
			n++
			u, ok := m.(*protocol.UnknownMessage)
			if !assert.True(s, ok, "%.60s is a %T", want.line, m) {
				continue
			}
			assert.Equal(s, want.line, string(u.Raw()))
			assert.Equal(s, want.typ, u.Type, "%.60s", want.line)
			assert.Equal(s, want.subtype, u.Subtype, "%.60s", want.line)
		}
		assert.Equal(s, len(lines), n)
		s.close(sess)
	})
}

// TestAResultThatDoesNotDecodeEndsItsTurn writes results with odd fields.
func TestAResultThatDoesNotDecodeEndsItsTurn(t *testing.T) {
	t.Parallel()
	odd := []string{`"num_turns":"many"`, `"usage":[]`, `"is_error":"no"`, `"subtype":7`, `"errors":{"a":1}`}
	onStages(t, func(s *stage) {
		sess := s.open(s.spec(func(h *hand) {
			for _, field := range odd {
				h.say(fmt.Sprintf(`{"type":"result","user_message_uuid":%q,%s,"result":"fine"}`, h.prompt(), field))
			}
		}))
		for range odd {
			turn := s.send(sess)
			lines := s.read(turn)
			require.Len(s, lines, 1)
			_, err := turn.Result(s.ctx)
			require.NoError(s, err, lines[0])
		}
		s.close(sess)
	})
}

// permutations lists the orders of some fields as objects.
func permutations(fields ...string) []string {
	if len(fields) == 1 {
		return fields
	}
	var all []string
	for i, first := range fields {
		rest := append(append([]string{}, fields[:i]...), fields[i+1:]...)
		for _, tail := range permutations(rest...) {
			all = append(all, first+","+tail)
		}
	}
	return all
}

// TestKeysInAnyOrder writes the same content, result and control frames with
// their keys in every order.
func TestKeysInAnyOrder(t *testing.T) {
	t.Parallel()
	assistants := permutations(`"type":"assistant"`, `"uuid":"u"`, `"session_id":"s"`, `"parent_tool_use_id":"p"`,
		`"message":{"content":[{"text":"hello","type":"text"}],"role":"assistant"}`)
	results := permutations(`"type":"result"`, `"subtype":"success"`, `"user_message_uuid":"ID"`, `"result":"done"`)
	outer := permutations(`"type":"control_request"`, `"request_id":"ID"`, `"request":{BODY}`)
	inner := permutations(`"subtype":"hologram"`, `"type":"x"`, `"request_id":"not this"`, `"uuid":"u"`)
	onStages(t, func(s *stage) {
		sess := s.open(s.spec(func(h *hand) {
			uuid := h.prompt()
			for _, fields := range assistants {
				h.say("{" + fields + "}")
			}
			id := 0
			for _, envelope := range outer {
				for _, body := range inner {
					id++
					name := fmt.Sprint("q", id)
					line := strings.NewReplacer(`"ID"`, `"`+name+`"`, "BODY", body).Replace(envelope)
					h.say("{" + line + "}")
					h.reply(name)
				}
			}
			h.say("{" + strings.Replace(results[0], "ID", uuid, 1) + "}")
			for _, fields := range results[1:] {
				h.say("{" + strings.Replace(fields, "ID", h.prompt(), 1) + "}")
			}
			for _, fields := range permutations(`"subtype":"success"`, `"request_id":"ID"`, `"response":{"model":"opus"}`) {
				call := h.request("get_thing")
				body := strings.Replace(fields, "ID", call.RequestID, 1)
				h.say(`{"response":{` + body + `},"type":"control_response"}`)
			}
		}))
		n := 0
		for m, err := range s.send(sess).Messages(s.ctx) {
			require.NoError(s, err)
			if a, ok := m.(*protocol.AssistantMessage); ok {
				n++
				assert.Equal(s, "hello", protocol.TextOf(a))
				assert.Equal(s, []string{"u", "s", "p"}, []string{a.UUID, a.SessionID, a.ParentToolUseID})
			}
		}
		assert.Equal(s, len(assistants), n)
		for range results[1:] {
			r, err := s.send(sess).Result(s.ctx)
			require.NoError(s, err)
			assert.Equal(s, "done", r.Result)
		}
		for range 6 {
			var answer struct{ Model string }
			require.NoError(s, sess.Call(s.ctx, &protocol.UnknownHostRequest{Name: "get_thing", Raw: []byte(`{"subtype":"get_thing"}`)}, &answer, 0))
			assert.Equal(s, "opus", answer.Model)
		}
		s.close(sess)
	})
}

// TestHugeLinesShareOneBudget lets many sessions write huge lines at once that
// are read slowly: all lines arrive, and the memory is that of the budget.
func TestHugeLinesShareOneBudget(t *testing.T) { // alone: it measures memory
	const budget = 12 * mib
	sessions, lines, size := scaled(20, 50), scaled(3, 20), scaled(3*mib, 8*mib)
	if testing.Short() || sim.Raced() {
		sessions = 10 // still more than twice the budget
	}
	line := append(bytes.Repeat([]byte("x"), size), "\"}\n"...)
	copy(line, `{"type":"blob","v":"`)
	idle := footprint()
	inSimulation(t, 1, runtime.Config{LineBudget: budget}, func(s *stage) {
		var readers []<-chan struct{}
		for i := range sessions {
			sess := s.open(s.spec(func(h *hand) {
				uuid := h.prompt()
				for range lines {
					h.write(line)
				}
				h.say(resultLine(uuid))
			}))
			turn := s.send(sess)
			reader, err := sess.Read()
			require.NoError(s, err)
			readers = append(readers, s.task(func() {
				for n := 0; ; n++ {
					m, err := reader.Next(s.ctx)
					if !assert.NoError(s, err) {
						return
					}
					if protocol.TextOf(m) == "done" {
						assert.Equal(s, lines, n, "session %d", i)
						break
					}
					s.pass(time.Duration(1+i%5) * time.Second)
				}
				reader.Close()
				_, err := turn.Result(s.ctx)
				assert.NoError(s, err)
				assert.NoError(s, sess.Close(s.ctx))
			}))
		}
		peak := int64(0)
		for range 5 * lines { // the slowest takes one line in 5 s
			s.pass(time.Second) // and by then nothing moves
			peak = max(peak, footprint()-idle)
		}
		for _, done := range readers {
			s.await(done)
		}
		// The buffer of a line may be twice its length; one line may overdraw;
		// and each session's next line grows to 1 MiB before it draws.
		limit := int64(2*(budget+size) + sessions*2*mib + 16*mib)
		t.Logf("%d lines of %d bytes: peak %d MiB, limit %d MiB", sessions*lines, size, peak/mib, limit/mib)
		assert.Less(s, peak, limit)
		assert.Greater(s, peak, int64(budget/2), "the measurement shows nothing")
	})
}
