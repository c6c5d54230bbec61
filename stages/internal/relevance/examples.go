package relevance

// apart draws elements of an [Example] that differ pairwise by at least 1/2, for operators that select the
// largest element.
func apart(i int) float32 { return float32(i*389%1009)/2 - 250 }

// aboveZero draws elements of an [Example] from 1/2 to 2.25.
func aboveZero(i int) float32 { return float32(8+i*389%29) / 16 }

// coarse draws elements of an [Example] between −4 and 4.5, each 1/4 away from the multiples of 1/2 where
// kinks may be.
func coarse(i int) float32 { return float32(i*389%17-8)/2 + 0.25 }

// inUnit draws elements of an [Example] between −1/2 and 1/2.
func inUnit(i int) float32 { return float32(i*389%29-14) / 28 }

// aboveOne draws elements of an [Example] from 1.25 to 3.
func aboveOne(i int) float32 { return float32(20+i*389%29) / 16 }
