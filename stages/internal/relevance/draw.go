package relevance

// apart draws elements of an [Example] that all differ by 1/2 at least, for operators that choose the largest
// of some.
func apart(i int) float32 { return float32(i*389%1009)/2 - 250 }

// aboveZero draws elements of an [Example] from 1/2 to 2.25.
func aboveZero(i int) float32 { return float32(8+i*389%29) / 16 }

// coarse draws elements of an [Example] between −4 and 4.5 that are all 1/4 away from multiples of 1/2, where
// bounds may be.
func coarse(i int) float32 { return float32(i*389%17-8)/2 + 0.25 }
