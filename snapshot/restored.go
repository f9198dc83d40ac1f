package snapshot

// Done tells whether the data directory is there, and was made by this very restore, of the
// snapshot whose data has that SHA-256, or of what has that Origin. What etcd has written since is
// in it.
func (o RestoreOptions) Done(of string) bool {
	return readOrigin(o.DataDir) == origin{SHA256: of, Member: o.Name, Token: o.Token}
}
