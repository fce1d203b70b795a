package ui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/runtime"
)

// A service mounts the window below a path. It answers with data only to a token or a login.
func ExampleHandler() {
	rt, err := runtime.New(runtime.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = rt.Shutdown(context.Background()) }()
	mux := http.NewServeMux()
	mux.Handle("/troupe/", ui.Handler(rt, ui.Config{Access: inspect.Access{Token: token}}))

	for _, authorization := range []string{"", "Bearer " + token} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/troupe/api/sessions", http.NoBody)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 401
	// 200
}
