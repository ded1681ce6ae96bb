package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// The vendors, as a device's identity names them.
const (
	nvidia = "nvidia"
	amd    = "amd"
	intel  = "intel"
)

// age orders NVIDIA's architectures by what their boards tell. Other vendors' boards have none.
type age int

const (
	_ age = iota
	ampere
	ada
	hopper
	blackwell
)

// board is one model. What is zero here, a real board of the model does not tell.
type board struct {
	id           string // as the description of a node writes it
	model        string
	vendor       string
	age          age
	architecture string
	capability   string // CUDA's
	driver       string
	firmware     string
	inforom      inforom
	consumer     bool // no serial and no part number
	media        bool // it is bought for pictures: its jobs serve, and encode what they made

	memory   int64 // bytes
	reserved int64 // bytes the driver keeps
	window   int64 // bytes of the memory's BAR1
	banks    int64 // of memory with spare rows; zero: it replaces no rows

	idle   int64    // watts
	limits [5]int64 // watts, by telemetry.PowerLimitType

	heat   heat
	margin bool     // it tells the degrees left to heat.coreMax, and the other limits as offsets to it
	told   [4]int64 // Celsius, by telemetry.TemperatureLimitType: what it tells of its limits
	fans   int      // of its own

	clocks      [4]span // by telemetry.ClockType
	base        int64   // megahertz the graphics clock keeps under any load the board is made for
	application int64   // megahertz of the graphics clock set for applications
	states      span    // performance states
	bus         bool    // it tells how busy its memory is
	engines     [4]bool // by telemetry.MediaEngine: whether it tells how busy the engine is
	eccMode     bool
	ecc         bool // it counts errors since its driver was loaded
	eccLife     bool // it counts errors in its life
	causes      bool // it tells why its clocks are held down, and for how long
	buckets     []telemetry.ThrottleBucket
	mig         bool      // it can be split
	parts       []profile // it is, into these

	pcie   pcie
	nvlink nvlink
}

// heat is how hot a board gets, in Celsius, and what it does about it.
type heat struct {
	full       int64 // the chip at its power limit, cooled well
	fullMemory int64 // its memory; zero: no sensor
	coreMax    int64 // above it the driver slows the clocks
	slowdown   int64 // above it the hardware does
	shutdown   int64 // above it the board switches off
}

// span is what a board has at rest and under load: megahertz of a clock, or performance states.
type span struct{ rest, most int64 }

// inforom is what the memory with a board's own description says of itself.
type inforom struct{ image, oem, ecc string }

// pcie is a board's way to its host.
type pcie struct {
	generation int64
	rest       int64 // the generation it falls back to when nothing is to be done
	lanes      int64
}

// nvlink are the links to the switches of a node; no board here is linked to another directly.
type nvlink struct {
	links      int64
	generation int64
	speed      int64 // megabytes a second, of a link, one way
	switches   int64 // that have a PCI address
}

// enforced is the power limit in force, which every board tells. In watts.
func (b *board) enforced() int64 { return b.limits[telemetry.PowerLimitTypeEnforced] }
