package dataset

// A shape is the outline of an object.
type shape int

const (
	disc shape = iota
	square
	triangle
	cross
	shapeCount
)

var shapeNames = [shapeCount]string{"disc", "square", "triangle", "cross"}

// A texture is the pattern inside the outline.
type texture int

const (
	stripes texture = iota
	checks
	dots
	textureCount
)

var textureNames = [textureCount]string{"striped", "checked", "dotted"}

const classCount = int(shapeCount) * int(textureCount)

// className returns the name of a class: 0 is a striped disc, 1 a checked disc, 2 a dotted disc, 3 a striped
// square and so on.
func className(label int) string {
	return textureNames[label%int(textureCount)] + " " + shapeNames[label/int(textureCount)]
}

// labelOf returns the class of a draw. Each block of classCount draws, counted from draw 0, contains every
// class once, in random order.
func labelOf(seed, index int) int {
	var order [classCount]int
	s := newStream(uint64(seed), uint64(index/classCount), 'l')
	for i := range order {
		k := int(s.between(0, int64(i)))
		order[i], order[k] = order[k], i
	}
	return order[index%classCount]
}

// A scene describes one object and its place. All domains render the same scenes.
type scene struct {
	label   int
	shape   shape
	texture texture
	x, y    int64 // the object's centre
	radius  int64 // of a disc; the other shapes have nearly the same area
	tilt    turn  // of the outline
	grain   turn  // of the texture
	period  int64 // of the texture
	u, v    int64 // the texture's phase
}

// newScene draws scene number index of a seed.
func newScene(seed, index int) scene {
	s := newStream(uint64(seed), uint64(index), 's')
	c := ofClass(labelOf(seed, index))
	c.radius = s.between(12*unit, 18*unit)
	reach := c.reach() + unit
	c.x, c.y = s.between(reach, side-reach), s.between(reach, side-reach)
	c.vary(&s)
	return c
}

// newPair draws two scenes of different classes, in opposite corners of one image. Their objects are as small
// as any, so that they don't overlap. The first has the class of the scene of the same number.
func newPair(seed, index int) []scene {
	s := newStream(uint64(seed), uint64(index), 'p')
	label := labelOf(seed, index)
	other := (label + int(s.between(1, int64(classCount)-1))) % classCount
	pair := []scene{ofClass(label), ofClass(other)}
	left, top := int(s.between(0, 1)), int(s.between(0, 1))
	for i := range pair {
		c := &pair[i]
		c.radius = 12 * unit
		reach := c.reach() + unit
		at := [2]int64{reach, side - reach}
		c.x, c.y = at[(left+i)%2], at[(top+i)%2]
		c.vary(&s)
	}
	return pair
}

// ofClass returns a scene of a class, without a place.
func ofClass(label int) scene {
	return scene{label: label, shape: shape(label / int(textureCount)),
		texture: texture(label % int(textureCount))}
}

// vary draws the rotation of an object and its texture.
func (c *scene) vary(s *stream) {
	c.tilt, c.grain = newTurn(s.between(0, 359)), newTurn(s.between(0, 359))
	c.period = s.between(6*unit, 8*unit)
	c.u, c.v = s.between(0, c.period-1), s.between(0, c.period-1)
}

// reach returns an upper bound of the object's extent from its centre.
func (c *scene) reach() int64 {
	switch c.shape {
	case square:
		return c.radius * 5 / 4
	case triangle:
		return c.radius * 3 / 2
	case cross:
		return c.radius * 4 / 3
	default:
		return c.radius
	}
}

// outside returns the signed distance of (x, y), relative to the centre, to the outline: negative inside, and
// exact to first order near the outline.
func (c *scene) outside(x, y int64) int64 {
	u, v := c.tilt.apply(x, y)
	switch c.shape {
	case square:
		return max(abs(u), abs(v)) - c.radius*7/8
	case triangle: // the three normals are (0, 1) and (±√3/2, −1/2)
		return max(v, (abs(u)*14189-v*8192)>>14) - c.radius*3/4
	case cross:
		long, short := c.radius*5/4, c.radius*13/32
		u, v = abs(u), abs(v)
		return min(max(u-long, v-short), max(u-short, v-long))
	default:
		return (u*u + v*v - c.radius*c.radius) / (2 * c.radius)
	}
}

// shade returns the share of the texture's second colour at (x, y), in 1/256, with edges smoothed by cover.
func (c *scene) shade(x, y int64, cover func(outside int64) int64) int64 {
	u, v := c.grain.apply(x, y)
	u, v = modulo(u+c.u, c.period)-c.period/2, modulo(v+c.v, c.period)-c.period/2
	switch c.texture {
	case stripes:
		return cover(abs(u) - c.period/4)
	case checks:
		a, b := cover(abs(u)-c.period/4), cover(abs(v)-c.period/4)
		return a + b - 2*a*b/256
	default:
		r := c.period * 11 / 32
		return cover((u*u + v*v - r*r) / (2 * r))
	}
}
