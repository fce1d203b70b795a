package browsertest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAResultBeforeItsCall: the newest messages begin with the result of a call that is among the earlier ones. It is not lost, and
// the call does not look as if it ran.
func TestAResultBeforeItsCall(t *testing.T) {
	t.Parallel()
	in := browser(t)
	s := serve(t, 10, 0)
	const id = "6y7evp9o8sye0"
	l := []object{
		{"seq": 1, "at": s.ago(9e9), "type": "assistant", "message": object{"role": "assistant", "content": []object{{"type": "tool_use", "id": "c", "name": "Bash", "input": object{"command": "make"}}}}},
		{"seq": 2, "at": s.ago(8e9), "type": "user", "message": object{"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": "c", "content": "it is made"}}}},
	}
	for i := range 199 {
		l = append(l, object{"seq": i + 3, "at": s.ago(7e9), "type": "assistant", "message": object{"role": "assistant", "content": []object{{"type": "text", "text": "I go on."}}}})
	}
	s.messages[id] = l
	p := window(t, in, s, "#/sessions/"+id, ".msg")
	assert.Zero(t, eval[int](t, p, `document.querySelectorAll(".call").length`))
	eval[any](t, p, `void document.querySelector(".more-tx").click()`)
	p.until(t, `document.querySelector(".call")?.textContent.includes("it is made")`)
	assert.Zero(t, eval[int](t, p, `document.querySelectorAll(".call.running").length`))
	p.sound(t)
}
