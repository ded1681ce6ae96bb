package sim

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// nvidiaDriver, its branch and its CUDA tell every throttle time.
const (
	nvidiaDriver = "580.65.06"
	nvidiaBranch = "r580_00"
	nvidiaCUDA   = "13.0"
)

const mebi = 1 << 20

// h100 is both whole and split.
var h100 = board{
	id: "h100", model: "Simulated NVIDIA H100 80GB HBM3", vendor: nvidia, age: hopper,
	architecture: "hopper", capability: "9.0", driver: nvidiaDriver, firmware: "96.00.61.00.01",
	inforom: inforom{"G520.0200.00.05", "2.1", "7.16"},
	memory:  85520809984, reserved: 502267904, window: 131072 * mebi, banks: 2560,
	idle: 70, limits: [5]int64{200, 700, 700, 700, 700},
	heat: heat{full: 62, fullMemory: 66, coreMax: 87, slowdown: 89, shutdown: 95}, margin: true,
	clocks: [4]span{{345, 1980}, {345, 1980}, {2619, 2619}, {765, 1545}}, base: 1590, application: 1980,
	bus: true, engines: [4]bool{true, true, true, true},
	eccMode: true, ecc: true, eccLife: true, causes: true, buckets: allBuckets, mig: true,
	pcie: pcie{5, 5, 16}, nvlink: nvlink{18, 4, 26562, 4},
}

// boards are the models. What is missing, and memory, its window and banks, clocks, offsets of
// temperature and power limits of H100, H200, B200 and L40S are as real boards answered nvidia-smi;
// so is most of the A100, of which a sister with half the memory was seen, and the RTX lacks what an
// RTX 4080 SUPER lacked. The rest is near what vendors publish of such boards, and so are temperatures
// under load; none of it was measured on one.
var boards = []board{
	h100,
	h100.split(sizesOfH100, "3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"),
	{
		id: "h200", model: "Simulated NVIDIA H200", vendor: nvidia, age: hopper,
		architecture: "hopper", capability: "9.0", driver: nvidiaDriver, firmware: "96.00.b9.00.01",
		inforom: inforom{"", "2.1", "7.16"},
		memory:  150754820096, reserved: 643825664, window: 262144 * mebi, banks: 3072,
		idle: 77, limits: [5]int64{200, 700, 700, 700, 700},
		heat: heat{full: 58, fullMemory: 60, coreMax: 87, slowdown: 89, shutdown: 95}, margin: true,
		clocks: [4]span{{345, 1980}, {345, 1980}, {3201, 3201}, {765, 1545}}, base: 1590, application: 1980,
		bus: true, engines: [4]bool{true, true, true, true},
		eccMode: true, ecc: true, eccLife: true, causes: true, buckets: allBuckets, mig: true,
		pcie: pcie{5, 5, 16}, nvlink: nvlink{18, 4, 26562, 4},
	},
	{
		id: "b200", model: "Simulated NVIDIA B200", vendor: nvidia, age: blackwell,
		architecture: "blackwell", capability: "10.0", driver: nvidiaDriver, firmware: "97.00.88.00.01",
		inforom: inforom{"G525.0220.00.03", "2.1", "7.16"},
		memory:  192265846784, reserved: 775946240, window: 262144 * mebi, banks: 3840,
		idle: 140, limits: [5]int64{200, 1000, 1000, 1000, 1000},
		heat: heat{full: 64, fullMemory: 68, coreMax: 88, slowdown: 91, shutdown: 93}, margin: true,
		clocks: [4]span{{120, 1965}, {120, 1965}, {3996, 3996}, {600, 1965}}, base: 700, application: 1965,
		bus: true, engines: [4]bool{true, true, true, true},
		eccMode: true, ecc: true, eccLife: true, causes: true, buckets: allBuckets, mig: true,
		pcie: pcie{5, 5, 16}, nvlink: nvlink{18, 5, 53125, 0},
	},
	{
		// The generation before the margin: it tells its limits instead.
		id: "a100", model: "Simulated NVIDIA A100-SXM4-80GB", vendor: nvidia, age: ampere,
		architecture: "ampere", capability: "8.0", driver: nvidiaDriver, firmware: "92.00.45.00.05",
		inforom: inforom{"", "2.0", "6.16"},
		memory:  85899345920, reserved: 662700032, window: 131072 * mebi, banks: 640,
		idle: 60, limits: [5]int64{100, 400, 400, 400, 400},
		heat: heat{full: 61, fullMemory: 64, coreMax: 85, slowdown: 89, shutdown: 92}, told: [4]int64{92, 89, 95, 85},
		clocks: [4]span{{210, 1410}, {210, 1410}, {1593, 1593}, {585, 1290}}, base: 1275, application: 1275,
		bus: true, engines: [4]bool{true, true, true, true},
		eccMode: true, ecc: true, eccLife: true, causes: true, buckets: allBuckets, mig: true,
		pcie: pcie{4, 4, 16}, nvlink: nvlink{12, 3, 25000, 6},
	},
	{
		id: "l40s", model: "Simulated NVIDIA L40S", vendor: nvidia, age: ada, media: true,
		architecture: "ada", capability: "8.9", driver: nvidiaDriver, firmware: "95.02.66.00.02",
		inforom: inforom{"", "2.1", "6.16"},
		memory:  48305799168, reserved: 638582784, window: 65536 * mebi, banks: 192,
		idle: 34, limits: [5]int64{100, 350, 350, 350, 350},
		heat: heat{full: 68, coreMax: 88, slowdown: 90, shutdown: 93}, margin: true,
		clocks: [4]span{{210, 2520}, {210, 2520}, {405, 9001}, {1185, 1965}}, base: 1110, states: span{8, 0},
		bus: true, engines: [4]bool{true, true, true, true},
		eccMode: true, ecc: true, eccLife: true, causes: true, buckets: allBuckets,
		pcie: pcie{4, 1, 16},
	},
	{
		id: "rtx4090", model: "Simulated NVIDIA GeForce RTX 4090", vendor: nvidia, age: ada, consumer: true,
		architecture: "ada", capability: "8.9", driver: nvidiaDriver, firmware: "95.02.3c.40.b8",
		inforom: inforom{"", "2.0", ""},
		memory:  25757220864, reserved: 455081984, window: 32768 * mebi,
		idle: 18, limits: [5]int64{150, 600, 450, 450, 450},
		heat: heat{full: 71, coreMax: 90, slowdown: 97, shutdown: 100}, told: [4]int64{100, 97, 0, 90}, fans: 2,
		clocks: [4]span{{210, 3105}, {210, 3105}, {405, 10501}, {1185, 2415}}, base: 2235, states: span{8, 2},
		bus: true, engines: [4]bool{true, true, true, true},
		causes: true, buckets: allBuckets,
		pcie: pcie{4, 1, 16},
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
