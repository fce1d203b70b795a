package sdk

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
)

type iface interface{ M() }

type impl struct{}

func (impl) M() {}

type codeError struct{ code int }

func (*codeError) Error() string { return "" }

//go:embed globals.go
var source string

var _ iface = impl{}

var (
	ErrBusy        = errors.New("busy")
	errCode  error = &codeError{1}
	expr           = regexp.MustCompile("x")
	shared         = sync.OnceValue(func() int { return 1 })
	zeroSize       = impl{}
	names          = [...]string{"a", "b"}
	known          = map[string]int{"a": 1}
	order          = []string{"a", "b"}
)

var (
	ErrMoved   = errors.New("moved")     // want `package-level variable ErrMoved is mutable state`
	counter    int                       // want `variable counter is mutable`
	mu         sync.Mutex                // want `variable mu is mutable`
	written    = map[string]int{}        // want `variable written is mutable`
	handedOut  = []string{"a"}           // want `variable handedOut is mutable`
	Exported   = map[string]int{"a": 1}  // want `variable Exported is mutable`
	addressed  = [...]int{1}             // want `variable addressed is mutable`
	hook       = func() {}               // want `variable hook is mutable`
	pool       = sync.Pool{}             // want `variable pool is mutable`
	pointed    = &codeError{2}           // want `variable pointed is mutable`
	reassigned = regexp.MustCompile("y") // want `variable reassigned is mutable`
)

//troupe:global filled once by the linker
var version string

//troupe:global both are set by the linker
var (
	commit string
	date   string
)

//troupe:global nothing here // want `allows nothing`

var sealed = errors.New("no sentinel by name") // want `variable sealed is mutable`

func use() []string {
	ErrMoved = ErrBusy
	counter++
	written["a"] = 1
	p := &addressed
	_ = p
	reassigned = expr
	for _, n := range names {
		fmt.Println(n, known[n], len(order), slices.Contains(order, n))
	}
	return handedOut
}
