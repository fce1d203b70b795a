package main

func Example() {
	main()
	// Output: Hello from the scripted agent, which says the same every time.
}
