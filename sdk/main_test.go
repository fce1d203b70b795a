package sdk_test

import (
	"flag"
	"os"
	goruntime "runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// agentEnv makes the test's program play an agent: "1", or a script.
const agentEnv = "TROUPE_SDK_TEST_AGENT"

func TestMain(m *testing.M) {
	if script := os.Getenv(agentEnv); script == "1" {
		agent.Main(scripted.New())
		return
	} else if script != "" {
		s, err := scripted.Parse([]byte(script))
		if err != nil {
			panic(err)
		}
		agent.Main(scripted.New(scripted.WithScript(s)))
		return
	}
	// In production most of these tests wait, for example until an agent is quiet.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(4*goruntime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

func turn(steps ...scripted.Step) scripted.Turn { return scripted.Turn{Steps: steps} }

// kinds are the types of messages, without those about state.
func kinds(messages []sdk.Message) []string {
	var all []string
	for _, m := range messages {
		switch m := m.(type) {
		case *sdk.InitMessage:
			all = append(all, "init")
		case *sdk.AssistantMessage:
			all = append(all, "assistant")
		case *sdk.UserMessage:
			all = append(all, "user")
		case *sdk.PartialAssistantMessage:
			all = append(all, "partial")
		case *sdk.ResultMessage:
			all = append(all, "result/"+m.Subtype)
		}
	}
	return all
}
