package picture

import (
	"errors"
	"slices"
)

// A scan is the part of a component's coefficients in one SOS segment: those from start to end in zigzag
// order, and of these the bits from low up or, if high isn't 0, only bit low.
type scan struct {
	comps      []*component
	start, end int
	high, low  int
}

var errScan = errors.New("it has a damaged scan header")

func (d *jpegDecoder) readScan(seg []byte) error {
	if d.comps == nil {
		return errors.New("its first scan comes before the frame header")
	}
	if len(seg) < 1 || len(seg) < 4+2*int(seg[0]) {
		return errTruncated
	}
	// Every MCU takes at least one bit, so a short file can't contain a large image: nothing is allocated for
	// its declared size.
	if d.mcux*d.mcuy > 8*len(d.b) {
		return errTruncated
	}
	if d.scans++; d.scans > maxScans {
		return errors.New("it has too many scans")
	}
	s, err := d.scanHeader(seg)
	if err != nil {
		return err
	}
	blocks := 0
	for i := range int(seg[0]) {
		c, err := d.scanComponent(&s, seg[1+2*i], seg[2+2*i])
		if err != nil {
			return err
		}
		blocks += c.h * c.v
		s.comps = append(s.comps, c)
	}
	if len(s.comps) > 1 && blocks > 10 { // B.2.3
		return errScan
	}
	d.bits = bitReader{b: d.b, pos: d.pos}
	err = d.units(&s)
	d.pos = d.bits.pos
	return err
}

// scanHeader reads which coefficients a scan has, after its components.
func (d *jpegDecoder) scanHeader(seg []byte) (scan, error) {
	n := int(seg[0])
	if n < 1 || n > len(d.comps) {
		return scan{}, errScan
	}
	if !d.progressive {
		return scan{end: 63}, nil
	}
	s := scan{start: int(seg[1+2*n]), end: int(seg[2+2*n]), high: int(seg[3+2*n] >> 4),
		low: int(seg[3+2*n] & 15)}
	if s.start > s.end || s.end > 63 || s.low > 13 || s.high != 0 && s.high != s.low+1 ||
		(s.start == 0) != (s.end == 0) || s.start > 0 && n > 1 {
		return scan{}, errScan
	}
	return s, nil
}

// scanComponent returns the component with an id, which a scan codes by the Huffman tables that a byte names.
func (d *jpegDecoder) scanComponent(s *scan, id, tables byte) (*component, error) {
	c := d.component(id)
	if c == nil || slices.Contains(s.comps, c) {
		return nil, errScan
	}
	c.dcTab, c.ac = int(tables>>4), int(tables&15)
	if c.dcTab > 3 || c.ac > 3 {
		return nil, errScan
	}
	if s.start == 0 && s.high == 0 && d.huff[0][c.dcTab] == nil || s.end > 0 && d.huff[1][c.ac] == nil {
		return nil, errors.New("a scan uses an undefined Huffman table")
	}
	if c.coef == nil {
		c.coef = make([][64]int16, c.stride*d.mcuy*c.v)
	}
	if c.quant == nil {
		if c.quant = d.quant[c.tq]; c.quant == nil {
			return nil, errors.New("a scan uses an undefined quantisation table")
		}
	}
	return c, nil
}

func (d *jpegDecoder) component(id byte) *component {
	for i := range d.comps {
		if d.comps[i].id == id {
			return &d.comps[i]
		}
	}
	return nil
}

// units decodes the minimum coded units of a scan, A.2: single blocks if it has one component, otherwise h×v
// blocks of every component.
func (d *jpegDecoder) units(s *scan) error {
	nx, ny := d.mcux, d.mcuy
	if len(s.comps) == 1 {
		nx, ny = s.comps[0].bw, s.comps[0].bh
	}
	reset := func() {
		d.eobRun = 0
		for _, c := range s.comps {
			c.dcPred = 0
		}
	}
	reset()
	for i := range nx * ny {
		if d.interval > 0 && i > 0 && i%d.interval == 0 {
			if err := d.bits.restart(i/d.interval - 1); err != nil {
				return err
			}
			reset()
		}
		x, y := i%nx, i/nx
		if len(s.comps) == 1 {
			c := s.comps[0]
			if err := d.block(s, c, &c.coef[y*c.stride+x]); err != nil {
				return err
			}
			continue
		}
		for _, c := range s.comps {
			for k := range c.h * c.v {
				at := (y*c.v+k/c.h)*c.stride + x*c.h + k%c.h
				if err := d.block(s, c, &c.coef[at]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (d *jpegDecoder) block(s *scan, c *component, b *[64]int16) error {
	if s.start == 0 {
		if err := d.dc(s, c, b); err != nil {
			return err
		}
	}
	switch {
	case s.end == 0:
		return nil
	case s.high > 0:
		return d.refine(s, d.huff[1][c.ac], b)
	default:
		return d.acFirst(s, d.huff[1][c.ac], b)
	}
}

// dc decodes the DC coefficient, F.2.2.1 and G.1.2.1.
func (d *jpegDecoder) dc(s *scan, c *component, b *[64]int16) error {
	if s.high > 0 {
		bit, err := d.bits.take(1)
		b[0] |= int16(bit << s.low)
		return err
	}
	size, err := d.bits.symbol(d.huff[0][c.dcTab])
	if err != nil {
		return err
	}
	if size > 15 {
		return errEntropy
	}
	diff, err := d.bits.receive(size)
	c.dcPred += diff
	b[0] = int16(c.dcPred << s.low)
	return err
}

// acFirst decodes the AC coefficients, F.2.2.2 and G.1.2.2.
func (d *jpegDecoder) acFirst(s *scan, t *huffman, b *[64]int16) error {
	if d.eobRun > 0 {
		d.eobRun--
		return nil
	}
	for k := max(s.start, 1); k <= s.end; k++ {
		rs, err := d.bits.symbol(t)
		if err != nil {
			return err
		}
		run, size := rs>>4, rs&15
		if size == 0 {
			if run == 15 {
				k += 15
				continue
			}
			if !d.progressive && run > 0 {
				return errEntropy
			}
			more, err := d.bits.take(run)
			d.eobRun = 1<<run + more - 1
			return err
		}
		k += run
		if k > s.end {
			return errEntropy
		}
		v, err := d.bits.receive(size)
		if err != nil {
			return err
		}
		b[zigzag[k]] = int16(v << s.low)
	}
	return nil
}

// refine decodes one more bit of the coefficients of earlier scans, and the coefficients that this bit makes
// non-zero, G.1.2.3.
func (d *jpegDecoder) refine(s *scan, t *huffman, b *[64]int16) error {
	k := s.start
	if d.eobRun == 0 {
		for k <= s.end {
			rs, err := d.bits.symbol(t)
			if err != nil {
				return err
			}
			run, size, fresh := rs>>4, rs&15, 0
			switch {
			case size == 1:
				bit, err := d.bits.take(1)
				if err != nil {
					return err
				}
				fresh = (2*bit - 1) << s.low
			case size > 1:
				return errEntropy
			case run < 15:
				more, err := d.bits.take(run)
				if err != nil {
					return err
				}
				d.eobRun = 1<<run + more
			}
			if d.eobRun > 0 {
				break
			}
			if k, err = d.correct(s, b, k, run); err != nil {
				return err
			}
			if fresh != 0 {
				if k > s.end {
					return errEntropy
				}
				b[zigzag[k]] = int16(fresh)
			}
			k++
		}
	}
	if d.eobRun > 0 {
		d.eobRun--
		_, err := d.correct(s, b, k, -1)
		return err
	}
	return nil
}

// correct reads a bit for every non-zero coefficient from k on, skips zeros zeros, and returns the index of
// the next one.
func (d *jpegDecoder) correct(s *scan, b *[64]int16, k, zeros int) (int, error) {
	for ; k <= s.end; k++ {
		v := &b[zigzag[k]]
		if *v == 0 {
			if zeros == 0 {
				break
			}
			zeros--
			continue
		}
		bit, err := d.bits.take(1)
		if err != nil {
			return k, err
		}
		if bit == 1 && *v > 0 {
			*v += 1 << s.low
		} else if bit == 1 {
			*v -= 1 << s.low
		}
	}
	return k, nil
}
