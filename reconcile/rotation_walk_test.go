package reconcile

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
	"quorate.dev/render"
)

// walk is a cluster whose authorities are rotated, as far as trust goes. Its members trust what the
// Secrets held when they started, and show what the kubelet wrote last; its application reads all
// files now and then.
type walk struct {
	*testing.T
	random  *rand.Rand
	c       *api.EtcdCluster
	now     time.Time
	secrets map[string]*corev1.Secret
	members map[string]*walker
	app     map[string][]byte
	read    time.Time          // when the application read its files
	user    *api.EtcdUser      // with a certificate
	issues  *pki.Authority     // as the operator knows it, which begins with none
	theirs  map[string][]byte  // the files of the user's application
	good    map[[2]string]bool // what was checked: a certificate, and what is trusted
}

// walker is one member.
type walker struct {
	pod    *corev1.Pod
	trusts map[string][]byte            // by the Secret
	files  map[string]map[string][]byte // by the Secret
}

var errDies = errors.New("the operator dies")

// TestRotationKeepsTrust: whatever is interrupted, and in whatever order kubelets, applications and
// operators come, each side of each connection trusts the other at all times, and the rotation
// comes to its end. So it does where an authority, or its key, was lost.
func TestRotationKeepsTrust(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			w := newWalk(t, seed)
			was := w.c.Status.TLS.DeepCopy()
			lost := func() {} // in the second step
			switch seed {
			case 1:
				delete(w.secrets, w.c.PeerAuthoritySecret())
			case 2:
				w.secrets[w.c.ClientAuthoritySecret()].Data[api.SecretKey] = nil
			case 4:
				lost = func() { w.secrets[w.c.ClientAuthoritySecret()].Data[api.SecretKey] = nil }
			case 5:
				lost = func() { delete(w.secrets, w.c.PeerAuthoritySecret()) }
			}
			word, midway := "a", []string{w.c.ClientAuthoritySecret(), w.c.PeerAuthoritySecret()}[seed%2]
			for n := 0; !w.done(word); n++ {
				w.c.Spec.TLS.Client.RotateAuthority, w.c.Spec.TLS.Peer.RotateAuthority = word, word
				if seed > 3 && word == "a" && len(w.secrets[midway].Data[api.SecretPreviousCert]) > 0 {
					lost()
					word = "b"
				}
				if n > 2400 {
					t.Fatalf("the rotation comes to no end: %+v %+v", w.c.Status.TLS.Client, w.c.Status.TLS.Peer)
				}
				w.turn()
				w.trusted()
			}
			is := w.c.Status.TLS
			if is.Client.Authority == was.Client.Authority || is.Peer.Authority == was.Peer.Authority {
				t.Errorf("the authorities are the same: %+v", is)
			}
			for name, m := range w.members {
				for secret, trusts := range m.trusts {
					if prints := pki.Fingerprints(trusts); len(prints) != 1 || slices.Contains([]string{was.Client.Authority, was.Peer.Authority}, prints[0]) {
						t.Errorf("%s trusts %v in %s", name, prints, secret)
					}
				}
			}
			for _, name := range []string{w.c.ClientAuthoritySecret(), w.c.PeerAuthoritySecret()} {
				for _, key := range []string{api.SecretNextKey, api.SecretNextCert, api.SecretPreviousCert} {
					if len(w.secrets[name].Data[key]) > 0 {
						t.Errorf("%s is left in Secret %s", key, name)
					}
				}
			}
		})
	}
}

func newWalk(t *testing.T, seed uint64) *walk {
	t.Helper()
	w := &walk{T: t, random: rand.New(rand.NewPCG(seed, 1)), c: managed(), now: noon, members: map[string]*walker{}, good: map[[2]string]bool{}}
	w.c.Spec.TLS.Client.RotationWait = new(api.Duration("2h"))
	w.secrets = secrets(t, w.c)
	for _, secret := range w.secrets {
		secret.Labels = map[string]string{api.LabelCluster: "db"}
	}
	for n := range 3 {
		w.start(w.c.MemberName(n))
		w.c.Status.Members = append(w.c.Status.Members, api.MemberStatus{Name: w.c.MemberName(n)})
	}
	w.user = &api.EtcdUser{ObjectMeta: child("app", "user")}
	w.user.Spec.ClusterRef.Name, w.user.Spec.Certificate = w.c.Name, &api.UserCertificate{SecretName: "app-etcd"}
	authority, err := pki.ReadAuthority(w.secrets[w.c.ClientAuthoritySecret()].Data, files, w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.issues = authority
	w.issue()
	w.reads()
	return w
}

// start a member, with what the Secrets hold and the status says.
func (w *walk) start(name string) {
	w.Helper()
	pod := ownedBy("cluster", withTLS(newPod(name)))
	made, err := render.Pod(w.c, render.Member{Name: name, Version: "3.6.16"})
	if err != nil {
		w.Fatal(err)
	}
	pod.Annotations, pod.Status.PodIP = made.Annotations, name
	m := &walker{pod: pod, trusts: map[string][]byte{}, files: map[string]map[string][]byte{}}
	for _, secret := range []string{"db-server-tls", "db-peer-tls"} {
		m.files[secret] = w.secrets[secret].Data
		m.trusts[secret] = w.secrets[secret].Data[api.SecretCA]
	}
	w.members[name] = m
}

// turn is what comes next, by chance: an operator that dies at some write, a kubelet, the planner,
// which recreates one Pod, a node that takes a member along, a new member, the application, or
// time.
func (w *walk) turn() {
	w.Helper()
	names := slices.Sorted(maps.Keys(w.members))
	name := names[w.random.IntN(len(names))]
	m := w.members[name]
	switch w.random.IntN(13) {
	case 0, 1, 2, 3, 4:
		w.operate(w.random.IntN(5))
	case 5, 6:
		for secret := range m.files {
			m.files[secret] = w.secrets[secret].Data
		}
	case 7, 8:
		if m.pod != nil && len(render.Outdated(w.c, m.pod)) > 0 || m.pod == nil {
			w.start(name)
		}
	case 9:
		switch {
		case w.random.IntN(4) == 0 && w.down() == 0:
			m.pod = nil
		case w.random.IntN(8) == 0 && len(w.members) < 5:
			name := w.c.MemberName(len(w.members))
			w.start(name)
			w.c.Status.Members = append(w.c.Status.Members, api.MemberStatus{Name: name})
		}
	case 10:
		w.reads()
	case 11:
		if w.random.IntN(4) == 0 { // the EtcdUser waits for long
			w.issue()
		}
	default:
		if w.now.Sub(w.read) > time.Hour { // an application that keeps what is written in docs/tls.md
			w.reads()
		}
		w.now = w.now.Add(20 * time.Minute)
	}
}

// reads: the applications read their files.
func (w *walk) reads() {
	w.app, w.theirs, w.read = w.secrets["db-client-tls"].Data, w.secrets["app-etcd"].Data, w.now
}

// issue writes the Secret and the status of the EtcdUser as package users does, with what the
// operator knows of the authority.
func (w *walk) issue() {
	w.Helper()
	if w.issues == nil {
		return
	}
	var had map[string][]byte
	if secret := w.secrets["app-etcd"]; secret != nil {
		had = secret.Data
	}
	data, _, _, err := w.issues.Renew("app", had, files, w.now, pki.LeafLifetime)
	if err != nil {
		if _, wrong := pki.Check(had, files, pki.Use{Client: true}, w.now); wrong != nil {
			w.user.Status.Certificate = nil
		}
		return
	}
	w.secrets["app-etcd"] = &corev1.Secret{ObjectMeta: child("app-etcd", "secret"), Data: data}
	issuer, expires := pki.Issuer(data, files)
	w.user.Status.Certificate = &api.IssuedCertificate{Authority: issuer, Trusts: pki.Fingerprints(data[api.SecretCA]), Expires: metav1.NewTime(expires)}
}

func (w *walk) down() (n int) {
	for _, m := range w.members {
		if m.pod == nil {
			n++
		}
	}
	return n
}

// operate is one look of a new operator, which dies after some writes.
func (w *walk) operate(writes int) {
	w.Helper()
	var objects []client.Object
	for _, secret := range w.secrets {
		objects = append(objects, secret)
	}
	objects = append(objects, w.user)
	for _, m := range w.members {
		if m.pod != nil {
			objects = append(objects, m.pod)
		}
	}
	s := newStub(w.T, func(write) error {
		if writes--; writes < 0 {
			return errDies
		}
		return nil
	}, objects...)
	s.handshaker = w.prove
	found, err := s.secure(w.Context(), w.c, w.now)
	if err != nil {
		w.Fatal(err)
	}
	for name, data := range s.secrets {
		w.secrets[name] = ownedBy("cluster", &corev1.Secret{ObjectMeta: child(name, "secret"), Data: data})
	}
	switch {
	case writes < 0: // it is dead
		w.issues = nil
	case found.blocked != nil:
		w.Fatalf("nothing goes on: %v", found.blocked)
	default:
		w.c.Status.TLS, w.issues = tlsStatus(w.c, found), found.authority
	}
}

// prove is how a member answers.
func (w *walk) prove(_ context.Context, host string, port int, config *tls.Config) (*x509.Certificate, error) {
	secret := "db-server-tls"
	if port == api.PortPeer {
		secret = "db-peer-tls"
	}
	m := w.members[host]
	block := certificate(w.T, m.files[secret][api.SecretCert])
	shown, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(m.trusts[secret])
	_, err = shown.Verify(x509.VerifyOptions{Roots: trusted, CurrentTime: w.now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return block, err
}

// trusted fails unless each connection that may be made now succeeds.
func (w *walk) trusted() {
	w.Helper()
	check := func(what string, shows map[string][]byte, names pki.Names, trusts []byte) {
		w.Helper()
		both := [2]string{string(shows[names.Cert]), string(trusts)}
		if w.good[both] { // no certificate expires in a walk
			return
		}
		w.good[both] = true
		pair := map[string][]byte{names.Cert: shows[names.Cert], names.Key: shows[names.Key], api.SecretCA: trusts}
		if _, err := pki.Check(pair, names, pki.Use{}, w.now); err != nil {
			w.Fatalf("%s: %v (client %+v, peer %+v)", what, err, w.c.Status.TLS.Client.Rotation, w.c.Status.TLS.Peer.Rotation)
		}
	}
	peer := pki.Names{Cert: api.SecretPeerCert, Key: api.SecretPeerKey, CA: api.SecretCA}
	operator := w.secrets["db-operator-tls"].Data
	for name, m := range w.members {
		if m.pod == nil {
			continue
		}
		for other, o := range w.members {
			if o.pod == nil {
				continue
			}
			check(fmt.Sprintf("%s shows %s its certificate", other, name), o.files["db-peer-tls"], files, m.trusts["db-peer-tls"])
			check(fmt.Sprintf("%s connects to %s", other, name), o.files["db-peer-tls"], peer, m.trusts["db-peer-tls"])
		}
		check("an application connects to "+name, w.app, files, m.trusts["db-server-tls"])
		check(name+" shows an application its certificate", m.files["db-server-tls"], files, w.app[api.SecretCA])
		check("a user connects to "+name, w.theirs, files, m.trusts["db-server-tls"])
		check(name+" shows a user its certificate", m.files["db-server-tls"], files, w.theirs[api.SecretCA])
		check("the operator connects to "+name, operator, files, m.trusts["db-server-tls"])
		check(name+" shows the operator its certificate", m.files["db-server-tls"], files, operator[api.SecretCA])
	}
}

// done reports whether both rotations for a word are over.
func (w *walk) done(word string) bool {
	t := w.c.Status.TLS
	return t.Client.RotateAuthority == word && t.Client.Rotation == nil && t.Peer.RotateAuthority == word && t.Peer.Rotation == nil && w.down() == 0
}

func certificate(t *testing.T, file []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(file)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
