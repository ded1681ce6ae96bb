package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// The vendors, as a device's identity names them.
const (
	nvidia = "nvidia"
	amd    = "amd"
	intel  = "intel"
)

// board is one model. What is zero here, a real board of the model does not tell.
type board struct {
	id           string // as the description of a node writes it
	model        string
	vendor       string
	architecture string
	capability   string // CUDA's
	driver       string
	firmware     string
	consumer     bool // no serial and no part number

	memory   int64 // bytes
	reserved int64 // bytes the driver keeps

	idle   int64    // watts
	limits [5]int64 // watts, by telemetry.PowerLimitType

	heat   heat
	margin bool     // it tells the degrees left to heat.slowdown
	told   [4]int64 // Celsius, by telemetry.TemperatureLimitType: what it tells of its limits

	clocks  [4]span // by telemetry.ClockType
	bus     bool    // it tells how busy its memory is
	engines [4]bool // by telemetry.MediaEngine: whether it tells how busy the engine is
	eccMode bool
	ecc     bool // it counts errors since its driver was loaded
	eccLife bool // it counts errors in its life
	causes  bool // it tells why its clocks are held down, and for how long
	buckets []telemetry.ThrottleBucket
	remap   bool  // it replaces rows of memory by spare ones
	fabric  int64 // links to the switches of its node; zero: it has none
}

// heat is how hot a board gets, in Celsius, and what it does about it.
type heat struct {
	full       int64 // the chip at its power limit, cooled well
	fullMemory int64 // its memory; zero: no sensor
	coreMax    int64 // above it the driver slows the clocks
	slowdown   int64 // above it the hardware does
}

// span is a clock's frequency at rest and at most, in megahertz.
type span struct{ rest, most int64 }

// nvidiaDriver and its CUDA are of the branch that tells every throttle time.
const (
	nvidiaDriver = "580.65.06"
	nvidiaCUDA   = "13.0"
)

// enforced is the power limit in force, which every board tells. In watts.
func (b *board) enforced() int64 { return b.limits[telemetry.PowerLimitTypeEnforced] }

// boards are the models. What is missing, and memory, clocks and power limits of H100, H200 and
// L40S, are as real boards answered nvidia-smi; the RTX lacks what an RTX 4080 SUPER lacked. The
// rest is near what vendors publish of such boards, and so are temperatures under load and limits of
// heat; none of it was measured on one.
var boards = []board{
	{
		id: "h100", model: "Simulated NVIDIA H100 80GB HBM3", vendor: nvidia,
		architecture: "hopper", capability: "9.0", driver: nvidiaDriver, firmware: "96.00.61.00.01",
		memory: 85520809984, reserved: 502267904,
		idle: 70, limits: [5]int64{200, 700, 700, 700, 700},
		heat: heat{full: 62, fullMemory: 66, coreMax: 83, slowdown: 87}, margin: true,
		clocks: [4]span{{345, 1980}, {345, 1980}, {2619, 2619}, {765, 1545}},
		bus:    true, engines: [4]bool{true, true, true, true},
		eccMode: true, ecc: true, eccLife: true, causes: true, buckets: allBuckets, remap: true, fabric: 18,
	},
	{
		id: "h200", model: "Simulated NVIDIA H200", vendor: nvidia,
		architecture: "hopper", capability: "9.0", driver: nvidiaDriver, firmware: "96.00.b9.00.01",
		memory: 150754820096, reserved: 643825664,
		idle: 77, limits: [5]int64{200, 700, 700, 700, 700},
		heat: heat{full: 58, fullMemory: 60, coreMax: 83, slowdown: 87}, margin: true,
		clocks: [4]span{{345, 1980}, {345, 1980}, {3201, 3201}, {765, 1545}},
		bus:    true, engines: [4]bool{true, true, true, true},
		eccMode: true, ecc: true, eccLife: true, causes: true, buckets: allBuckets, remap: true, fabric: 18,
	},
	{
		id: "b200", model: "Simulated NVIDIA B200", vendor: nvidia,
		architecture: "blackwell", capability: "10.0", driver: nvidiaDriver, firmware: "97.00.88.00.01",
		memory: 192265846784, reserved: 775946240,
		idle: 140, limits: [5]int64{200, 1000, 1000, 1000, 1000},
		heat: heat{full: 64, fullMemory: 68, coreMax: 84, slowdown: 88}, margin: true,
		clocks: [4]span{{120, 1965}, {120, 1965}, {3996, 3996}, {600, 1530}},
		bus:    true, engines: [4]bool{true, true, true, true},
		eccMode: true, ecc: true, eccLife: true, causes: true, buckets: allBuckets, remap: true, fabric: 18,
	},
	{
		// The generation before the margin: it tells its limits instead.
		id: "a100", model: "Simulated NVIDIA A100-SXM4-80GB", vendor: nvidia,
		architecture: "ampere", capability: "8.0", driver: nvidiaDriver, firmware: "92.00.45.00.05",
		memory: 85899345920, reserved: 662700032,
		idle: 60, limits: [5]int64{100, 400, 400, 400, 400},
		heat: heat{full: 61, fullMemory: 64, coreMax: 85, slowdown: 89}, told: [4]int64{92, 89, 95, 85},
		clocks: [4]span{{210, 1410}, {210, 1410}, {1593, 1593}, {585, 1275}},
		bus:    true, engines: [4]bool{true, true, true, true},
		eccMode: true, ecc: true, eccLife: true, causes: true, buckets: allBuckets, remap: true, fabric: 12,
	},
	{
		id: "l40s", model: "Simulated NVIDIA L40S", vendor: nvidia,
		architecture: "ada", capability: "8.9", driver: nvidiaDriver, firmware: "95.02.66.00.02",
		memory: 48305799168, reserved: 638582784,
		idle: 34, limits: [5]int64{100, 350, 350, 350, 350},
		heat: heat{full: 68, coreMax: 84, slowdown: 88}, margin: true,
		clocks: [4]span{{210, 2520}, {210, 2520}, {405, 9001}, {1185, 1965}},
		bus:    true, engines: [4]bool{true, true, true, true},
		eccMode: true, ecc: true, eccLife: true, causes: true, buckets: allBuckets, remap: true,
	},
	{
		id: "rtx4090", model: "Simulated NVIDIA GeForce RTX 4090", vendor: nvidia,
		architecture: "ada", capability: "8.9", driver: nvidiaDriver, firmware: "95.02.3c.40.b8", consumer: true,
		memory: 25757220864, reserved: 455081984,
		idle: 18, limits: [5]int64{150, 600, 450, 450, 450},
		heat: heat{full: 71, coreMax: 90, slowdown: 97}, told: [4]int64{100, 97, 0, 90},
		clocks: [4]span{{210, 3105}, {210, 3105}, {405, 10501}, {1185, 2415}},
		bus:    true, engines: [4]bool{true, true, true, true},
		causes: true, buckets: allBuckets,
	},
	{
		// What amdgpu's files tell: memory in two numbers, no board's life, no cause of throttling,
		// the hottest spot of the chip, and of the clocks no SM's.
		id: "mi300x", model: "Simulated AMD Instinct MI300X", vendor: amd,
		architecture: "cdna3", driver: "6.12.12", firmware: "113-M3000100-103",
		memory: 206141652992,
		idle:   140, limits: [5]int64{0, 750, 750, 750, 0},
		heat: heat{full: 74, fullMemory: 66, coreMax: 95, slowdown: 100}, told: [4]int64{105, 100, 0, 0},
		clocks: [4]span{telemetry.ClockTypeGraphics: {132, 2100}, telemetry.ClockTypeMemory: {900, 1300}},
		bus:    true, engines: [4]bool{telemetry.MediaEngineJPEG: true},
		ecc: true,
	},
	{
		// What Intel's library tells. Its one clock is the SoC's, which the spec has no word for.
		id: "gaudi3", model: "Simulated Intel Gaudi 3 HL-325L", vendor: intel,
		architecture: "gaudi3", driver: "1.19.1", firmware: "hl-gaudi3-1.19.1-fw-57.2.2",
		memory: 137438953472,
		idle:   230, limits: [5]int64{0, 0, 900, 900, 0},
		heat: heat{full: 63, coreMax: 92, slowdown: 98}, told: [4]int64{103, 98, 0, 92},
		eccMode: true, ecc: true, eccLife: true,
		buckets: []telemetry.ThrottleBucket{telemetry.ThrottleBucketPower, telemetry.ThrottleBucketThermal},
	},
}

var allBuckets = []telemetry.ThrottleBucket{
	telemetry.ThrottleBucketPower, telemetry.ThrottleBucketThermal, telemetry.ThrottleBucketSW, telemetry.ThrottleBucketHW,
}
