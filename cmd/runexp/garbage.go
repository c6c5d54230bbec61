package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
)

// firstCollection is how much memory Go takes before garbage is collected at all.
const firstCollection = 40 << 20

// collectLater has garbage collected only once there is some amount of it. A plan of ten thousand cells fits
// below that, and takes a tenth less time when no collection scans the objects it is going to need to its
// end. From the first collection on, or from when asUsual is called, all is as usual.
func collectLater() (asUsual func()) {
	percent := debug.SetGCPercent(-1)
	debug.SetMemoryLimit(firstCollection)
	asUsual = sync.OnceFunc(func() {
		debug.SetMemoryLimit(math.MaxInt64)
		debug.SetGCPercent(percent)
	})
	type sentinel struct{ _ [16]byte }
	runtime.SetFinalizer(&sentinel{}, func(*sentinel) { asUsual() })
	return asUsual
}
