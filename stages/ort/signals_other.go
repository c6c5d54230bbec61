//go:build !linux || !(amd64 || arm64)

package ort

// CatchFaults leaves faults in libraries to Go.
func CatchFaults(string, int) {}

func printFaultsTo(int) {}
