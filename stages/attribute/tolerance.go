package attribute

// Tolerances of methods on other devices: see [stages.Def.Tolerance]. They are what the last bit makes of
// maps on a processor alone: a change of images by 2e-7 moves fewer maps than one in twenty farther.
// docs/devices.csv has what was measured on a device.
const (
	// kinks is that of methods with a backward pass. The last bit decides whether a rectifier near 0 passes
	// anything, and which of a pool's nearly equal values does. On photographs this moves up to 0.02 of a
	// map.
	kinks = 0.03

	// dropTolerance is that of channels' weights that are small differences of large outputs.
	dropTolerance = 1e-3

	// pathTolerance is that of a path on which each step picks the values that move next by the order of
	// their derivatives; signTolerance of one whose steps are the signs of derivatives.
	pathTolerance = 0.5
	signTolerance = 0.1

	// quotientTolerance is that of relevance divided by sums that may nearly cancel.
	quotientTolerance = 0.2
)
