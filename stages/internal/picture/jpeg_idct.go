package picture

// Fixed-point constants of the transform, times 2¹³: c1 … c7 of Loeffler, Ligtenberg and Moschytz, "Practical
// fast 1-D DCT algorithms with 11 multiplications", ICASSP 1989, combined so that each rotation needs three
// multiplications.
const (
	idctBits  = 13
	idctExtra = 2 // fractional bits kept by the first pass

	fix0298 = 2446
	fix0390 = 3196
	fix0541 = 4433
	fix0765 = 6270
	fix0899 = 7373
	fix1175 = 9633
	fix1501 = 12299
	fix1847 = 15137
	fix1961 = 16069
	fix2053 = 16819
	fix2562 = 20995
	fix3072 = 25172
)

// reconstruct converts coefficients into samples. Columns are transformed first, and rounded to two
// fractional bits; order and rounding are those of libjpeg's accurate integer method, on which the last bit
// depends.
func (c *component) reconstruct() {
	c.planeWidth = 8 * c.bw
	c.plane = make([]uint8, c.planeWidth*8*c.bh)
	var in, mid, out [8]int
	var work [64]int
	for by := range c.bh {
		for bx := range c.bw {
			b := &c.coef[by*c.stride+bx]
			for x := range 8 {
				for y := range 8 {
					in[y] = int(b[8*y+x]) * int(c.quant[8*y+x])
				}
				idct8(&mid, &in, idctBits-idctExtra)
				for y := range 8 {
					work[8*y+x] = mid[y]
				}
			}
			for y := range 8 {
				idct8(&out, (*[8]int)(work[8*y:]), idctBits+idctExtra+3)
				row := c.plane[(8*by+y)*c.planeWidth+8*bx:][:8]
				for x := range row {
					row[x] = clip8(out[x] + 128)
				}
			}
		}
	}
	c.coef = nil
}

// idct8 writes the inverse transform of in, times √8, shifted right by shift and rounded.
func idct8(out, in *[8]int, shift int) {
	// Even part: a rotation by 6π/16, then butterflies.
	r := (in[2] + in[6]) * fix0541
	e2, e3 := r-in[6]*fix1847, r+in[2]*fix0765
	e0, e1 := (in[0]+in[4])<<idctBits, (in[0]-in[4])<<idctBits
	a0, a1, a2, a3 := e0+e3, e1+e2, e1-e2, e0-e3

	// Odd part.
	s17, s35, s37, s15 := in[7]+in[1], in[5]+in[3], in[7]+in[3], in[5]+in[1]
	r = (s37 + s15) * fix1175
	t17, t35 := -s17*fix0899, -s35*fix2562
	t37, t15 := r-s37*fix1961, r-s15*fix0390
	b3 := in[7]*fix0298 + t17 + t37
	b2 := in[5]*fix2053 + t35 + t15
	b1 := in[3]*fix3072 + t35 + t37
	b0 := in[1]*fix1501 + t17 + t15

	half := 1 << (shift - 1)
	out[0], out[7] = (a0+b0+half)>>shift, (a0-b0+half)>>shift
	out[1], out[6] = (a1+b1+half)>>shift, (a1-b1+half)>>shift
	out[2], out[5] = (a2+b2+half)>>shift, (a2-b2+half)>>shift
	out[3], out[4] = (a3+b3+half)>>shift, (a3-b3+half)>>shift
}
