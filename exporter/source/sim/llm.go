package sim

// llm is a language model, what it needs and how it is used. What it needs follows from the sizes
// models of that class publish, with weights and cache of 16 bits; how fast it is, from the memory
// that is read for each token.
type llm struct {
	name     string
	weights  int64   // bytes
	perToken int64   // bytes of the key-value cache: layers, times heads of keys and values, times their width
	places   int     // requests the engine works on at once
	prompt   float64 // tokens of the median prompt
	answer   float64 // tokens of the median answer
	pace     float64 // seconds between two tokens of a request that is alone
	drag     float64 // seconds that each request beside it adds
	reading  float64 // tokens of prompts a second
}

// llms are the models that are served, the largest first.
var llms = [...]llm{
	{"simulated/llama-70b", 141e9, 327680, 128, 1400, 170, 0.019, 0.00019, 12e3},
	{"simulated/qwen-32b", 65e9, 262144, 128, 1100, 170, 0.017, 0.00018, 14e3},
	{"simulated/llama-8b", 16e9, 131072, 128, 800, 150, 0.015, 0.00017, 16e3},
	{"simulated/llama-3b", 6.4e9, 114688, 64, 200, 120, 0.014, 0.0002, 12e3},
}

// largest is the largest model that leaves enough of a memory to its cache.
func largest(memory int64) *llm {
	for i := range llms {
		if llms[i].weights <= memory/10*7 {
			return &llms[i]
		}
	}
	return &llms[len(llms)-1]
}

// loadedPerSecond is how many bytes of a model each board reads from its host, which has it in memory.
const loadedPerSecond = 8e9

// ramp is how many ticks it takes until the model is loaded by so many boards.
func (m *llm) ramp(boards int64) int64 { return 2 + m.weights/loadedPerSecond/boards }

// speed is how many requests a second an engine ends that is full.
func (m *llm) speed() float64 {
	const mean = 1.3 // answers, of the median
	return float64(m.places) / (mean * m.answer * (m.pace + m.drag*float64(m.places)))
}
