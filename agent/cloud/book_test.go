package cloud

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMessagesWaitForEachOther: while nobody knows whether a message has arrived none is posted after it.
func TestMessagesWaitForEachOther(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	var b book
	first, second := &message{uuid: "1", text: "same"}, &message{uuid: "2", text: "same"}
	b.open = []*message{first, second}
	assert.Same(t, first, b.next())
	b.begin(first, now)
	assert.Nil(t, b.next(), "its request is under way")
	first.stage = unclear
	assert.Nil(t, b.next(), "it may have arrived")
	b.take(eventUserMessage, &eventData{TurnID: "t1", Content: []byte(`"same"`)}, now)
	assert.Equal(t, posted, first.stage)
	assert.Equal(t, "t1", first.turnID)
	assert.Same(t, second, b.next())
	b.begin(second, now)
	second.stage = unclear
	b.confirm(now)
	assert.Equal(t, unclear, second.stage, "the event was the first one's")
}

// TestResultsComeInOrder: of turns that end in another order, and of turns without ids.
func TestResultsComeInOrder(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	post := func(b *book, uuid, turn string) *message {
		m := &message{uuid: uuid, text: uuid}
		b.open = append(b.open, m)
		b.begin(m, now)
		b.arrived(m, turn, now)
		return m
	}
	say := func(b *book, turn, text string) {
		b.take(eventAgentMessage, &eventData{TurnID: turn, Content: []byte(`"` + text + `"`)}, now)
	}
	idle := func(b *book, turn string) { b.take(eventIdle, &eventData{TurnID: turn}, now) }
	popped := func(b *book, at time.Time) []string {
		var all []string
		for {
			m, turn := b.pop(at)
			if m == nil {
				return all
			}
			text := "nothing"
			if turn != nil {
				text = turn.text.String()
			}
			all = append(all, m.uuid+": "+text)
		}
	}
	t.Run("the second ends first", func(t *testing.T) {
		t.Parallel()
		var b book
		post(&b, "1", "t1")
		post(&b, "2", "t2")
		say(&b, "t2", "two")
		say(&b, "t1", "one")
		idle(&b, "t2")
		assert.Empty(t, popped(&b, now))
		idle(&b, "t1")
		assert.Equal(t, []string{"1: one", "2: two"}, popped(&b, now))
	})
	t.Run("the first never ends", func(t *testing.T) {
		t.Parallel()
		var b book
		post(&b, "1", "t1")
		post(&b, "2", "t2")
		say(&b, "t1", "one")
		idle(&b, "t2")
		assert.Empty(t, popped(&b, now))
		assert.Equal(t, now.Add(foldLimit), b.wake())
		idle(&b, "other")
		assert.Equal(t, now.Add(foldLimit), b.wake(), "nothing is done about the second before the first is over")
		assert.Equal(t, []string{"1: one", "2: "}, popped(&b, now.Add(foldLimit)))
	})
	t.Run("another turn id", func(t *testing.T) {
		t.Parallel()
		var b book
		post(&b, "1", "t1")
		say(&b, "other", "one")
		idle(&b, "other")
		assert.Empty(t, popped(&b, now.Add(strayLimit-1)))
		assert.Equal(t, []string{"1: one"}, popped(&b, now.Add(strayLimit)))
	})
	t.Run("an event of the turn after all", func(t *testing.T) {
		t.Parallel()
		var b book
		post(&b, "1", "t1")
		idle(&b, "other")
		say(&b, "t1", "one")
		assert.Empty(t, popped(&b, now.Add(time.Hour)))
		idle(&b, "t1")
		assert.Equal(t, []string{"1: one"}, popped(&b, now))
	})
	t.Run("no ids", func(t *testing.T) {
		t.Parallel()
		var b book
		say(&b, "", "before")
		post(&b, "1", "")
		say(&b, "", "one")
		idle(&b, "")
		assert.Equal(t, []string{"1: one"}, popped(&b, now))
		post(&b, "2", "")
		say(&b, "", "two")
		idle(&b, "")
		assert.Equal(t, []string{"2: two"}, popped(&b, now))
	})
	t.Run("late events of a turn that has its result", func(t *testing.T) {
		t.Parallel()
		var b book
		post(&b, "1", "t1")
		idle(&b, "t1")
		assert.Equal(t, []string{"1: "}, popped(&b, now))
		post(&b, "2", "t2")
		idle(&b, "t1")
		assert.Empty(t, popped(&b, now.Add(time.Hour)))
	})
	t.Run("terminated", func(t *testing.T) {
		t.Parallel()
		var b book
		post(&b, "1", "t1")
		post(&b, "2", "")
		b.open = append(b.open, &message{uuid: "3"})
		b.take(eventStatusTerminated, &eventData{}, now)
		assert.Len(t, popped(&b, now), 2, "the third was not posted")
	})
}

// TestWhatIsRememberedIsBounded: ids, turns of nobody's and user messages of the cloud's.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	var b book
	m := &message{uuid: "1", stage: posted, turnID: "mine"}
	b.open = append(b.open, m)
	var seen ids
	for i := range 2 * maxIDs {
		id := time.Duration(i).String()
		seen.add(id)
		b.take(eventUserMessage, &eventData{TurnID: id}, time.Unix(0, 0))
		b.ended.add(id)
	}
	assert.Len(t, seen.set, maxIDs)
	assert.False(t, seen.has(time.Duration(0).String()))
	assert.True(t, seen.has(time.Duration(2*maxIDs-1).String()))
	assert.LessOrEqual(t, len(b.turns), maxTurns+1)
	assert.LessOrEqual(t, len(b.said), maxUserTurn)
	assert.Len(t, b.ended.set, maxIDs)
	b.take(eventIdle, &eventData{TurnID: "mine"}, time.Unix(0, 0))
	got, _ := b.pop(time.Unix(0, 0))
	assert.Same(t, m, got)
}

// TestEventsBeforeTheAnswer: what comes before the answer to a message counts.
func TestEventsBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	posting := func() (*book, *message) {
		b := &book{}
		m := &message{uuid: "1", text: "hi"}
		b.open = append(b.open, m)
		b.begin(m, now)
		return b, m
	}
	t.Run("terminated", func(t *testing.T) {
		t.Parallel()
		b, m := posting()
		b.take(eventTerminated, &eventData{}, now)
		got, _ := b.pop(now)
		assert.Nil(t, got)
		b.arrived(m, "t1", now)
		got, turn := b.pop(now)
		assert.Same(t, m, got)
		assert.Contains(t, turn.failure, "terminated")
	})
	t.Run("idle with another id", func(t *testing.T) {
		t.Parallel()
		b, m := posting()
		b.take(eventAgentMessage, &eventData{TurnID: "other", Content: []byte(`"text"`)}, now)
		b.take(eventIdle, &eventData{TurnID: "other"}, now)
		b.arrived(m, "t1", now)
		assert.Equal(t, now.Add(strayLimit), b.wake())
		got, turn := b.pop(now.Add(strayLimit))
		assert.Same(t, m, got)
		assert.Equal(t, "text", turn.text.String())
	})
	t.Run("an error without an id", func(t *testing.T) {
		t.Parallel()
		b, m := posting()
		b.arrived(m, "t1", now)
		b.take(eventError, &eventData{Error: []byte(`"broken"`)}, now)
		got, turn := b.pop(now)
		assert.Same(t, m, got)
		assert.Equal(t, "broken", turn.failure)
	})
}

func TestLongTextIsCut(t *testing.T) {
	t.Parallel()
	var turn turn
	piece, err := json.Marshal(strings.Repeat("é", 1<<20))
	require.NoError(t, err)
	for range 10 {
		turn.take(eventAgentMessage, &eventData{Content: piece})
	}
	assert.True(t, turn.truncated)
	assert.LessOrEqual(t, turn.text.Len(), maxText)
	assert.Greater(t, turn.text.Len(), maxText-4)
	assert.True(t, utf8.ValidString(turn.text.String()))
}

// TestOldMessagesConfirmNothing: a text that was sent before does not show that its repetition has arrived.
func TestOldMessagesConfirmNothing(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	var b book
	shown := func(turn string) { b.take(eventUserMessage, &eventData{TurnID: turn, Content: []byte(`"same"`)}, now) }
	shown("") // of somebody else
	first := &message{uuid: "1", text: "same"}
	b.open = append(b.open, first)
	b.begin(first, now)
	first.stage = unclear
	b.confirm(now)
	assert.Equal(t, unclear, first.stage)
	shown("t1")
	assert.Equal(t, posted, first.stage)
	b.take(eventIdle, &eventData{TurnID: "t1"}, now)
	got, _ := b.pop(now)
	assert.Same(t, first, got)

	second := &message{uuid: "2", text: "same"}
	b.open = append(b.open, second)
	b.begin(second, now)
	second.stage = unclear
	shown("t1") // late, of the turn that is over
	assert.Equal(t, unclear, second.stage)
	shown("t2")
	assert.Equal(t, posted, second.stage)
	assert.Equal(t, "t2", second.turnID)
}
