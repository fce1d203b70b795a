// Package ui is a window on a running program: pages in a browser that show its sessions,
// their supervision trees, jobs, approvals and accounts as they change, and that steer them
// where [inspect.Access] allows it.
//
//	mux.Handle("/troupe/", ui.Handler(rt, ui.Config{Access: inspect.Access{Token: token}}))
//
// The gate, the endpoints, the one stream of events and the files of the pages live here.
// The pages are plain modules in package internal/pages, without a build step; nothing is
// fetched from anywhere else. The packages runtime and fleet
// count; nothing is counted here that they count. This package does not import fleet: a job offers its pages through [Job].
package ui
