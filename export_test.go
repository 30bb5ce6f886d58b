package onceward

// InAir returns how many keys this process is working on.
func (g *Guard) InAir() (n int) {
	for i := range g.flights.shards {
		s := &g.flights.shards[i]
		s.Lock()
		n += len(s.byID)
		s.Unlock()
	}
	return n
}

// Cut is what becomes of an error's text.
func Cut(text string, n int) string { return cut(text, n) }
