package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile"
	"quorate.dev/reconcile/backup"
	"quorate.dev/reconcile/index"
	"quorate.dev/reconcile/restore"
	"quorate.dev/reconcile/users"
)

// leaseName is what all operators of a namespace compete for. The Role quorate-leader-election
// names it too.
const leaseName = "quorate"

// shutdown is how long a pass may take to end. It is shorter than the Pod's termination grace, so
// that the lease is released and the next operator starts at once.
const shutdown = 20 * time.Second

// proxiesFollow is how long kube-proxy lets pass at least between two times that it follows what
// has changed (minSyncPeriod of iptables and nftables, by default).
const proxiesFollow = time.Second

// imageVariable names the operator's own image. The Deployment sets it beside the image itself.
const imageVariable = "QUORATE_IMAGE"

// namespaceVariable and accountVariable name the operator's own ServiceAccount. The Deployment sets
// them.
const (
	namespaceVariable = "POD_NAMESPACE"
	accountVariable   = "POD_SERVICE_ACCOUNT"
)

// serviceAccount is that of the operator, as <namespace>:<name>; empty outside of a Pod.
func serviceAccount() string {
	namespace, name := os.Getenv(namespaceVariable), os.Getenv(accountVariable)
	if namespace == "" || name == "" {
		return ""
	}
	return namespace + ":" + name
}

// operatorOptions are the flags of "quorate operator".
type operatorOptions struct {
	watchNamespaces []string
	leaderElect     bool
	metricsAddress  string
	metricsSecure   bool
	probeAddress    string
	concurrency     int
	maxChanging     int
	stallAfter      time.Duration
	agentImage      string
	logLevel        string
}

func operator() *cobra.Command {
	o := &operatorOptions{}
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Run the operator",
		Long: `Run the operator: inside a cluster with the rights of its Pod, elsewhere with those of $KUBECONFIG. The operator
talks to etcd members by the IP address of their Pod.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags(cmd.Flags())
	return cmd
}

func (o *operatorOptions) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.watchNamespaces, "watch-namespace", nil, "namespace to look after; repeat it or separate by commas (default: all)")
	f.BoolVar(&o.leaderElect, "leader-elect", true, "act only while holding the lease "+leaseName+" in the operator's namespace")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", "0", "where to serve /metrics, such as :8443; 0 means nowhere")
	f.BoolVar(&o.metricsSecure, "metrics-secure", true, "serve metrics over HTTPS, only to clients that the API server allows to get /metrics")
	f.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "where to serve /healthz and /readyz; 0 means nowhere")
	f.IntVar(&o.concurrency, "max-concurrent-reconciles", 8, "clusters that are reconciled at the same time, not counting those that wait for members that do not answer; of one namespace three quarters at most")
	f.IntVar(&o.maxChanging, "max-changing", 10, "clusters that change what they run (version, options, resources, volumes) at the same time; 0 means all")
	f.DurationVar(&o.stallAfter, "stall-after", time.Minute, "how long Pods may fail to start or to be ready, or members be unreachable, before the cluster is Stalled")
	f.StringVar(&o.agentImage, "agent-image", os.Getenv(imageVariable), "image with which the Jobs of backups and restores run: the operator's own (default: what "+imageVariable+" says)")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info or error")
}

func (o *operatorOptions) run(ctx context.Context) error {
	level, err := zapcore.ParseLevel(o.logLevel)
	if err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	// Most errors here are the weather of a distributed system: the message says what a stack trace
	// would not.
	log := zap.New(zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel))
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	options, err := o.manager()
	if err != nil {
		return err
	}
	server, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	serverTime := &reconcile.ServerTime{}
	server.Wrap(serverTime.Over)
	mgr, err := ctrl.NewManager(server, options)
	if err != nil {
		return fmt.Errorf("set up manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	// Ready says nothing of leading: an operator that waits for the lease is as it should be.
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := index.Add(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r := &reconcile.Reconciler{
		Client:      mgr.GetClient(),
		Reader:      mgr.GetAPIReader(),
		Recorder:    mgr.GetEventRecorder(api.Manager),
		Dial:        membership.Dial,
		DialTLS:     membership.DialTLS,
		DialAuth:    membership.DialAuth,
		Scrape:      membership.Scrape,
		AgentImage:  o.agentImage,
		StallAfter:  o.stallAfter,
		MaxChanging: o.maxChanging,
		ServerTime:  serverTime,

		ServiceAccount: serviceAccount(),

		ProxiesFollow: proxiesFollow,
	}
	if err := r.SetupWithManager(mgr, o.concurrency); err != nil {
		return fmt.Errorf("set up reconciler: %w", err)
	}
	if err := mgr.AddHealthzCheck("workers", r.Alive); err != nil {
		return err
	}
	b := &backup.Reconciler{
		Client:     mgr.GetClient(),
		Reader:     mgr.GetAPIReader(),
		Recorder:   mgr.GetEventRecorder(api.Manager),
		AgentImage: o.agentImage,
		StallAfter: o.stallAfter,
	}
	if err := b.SetupWithManager(mgr, o.concurrency); err != nil {
		return fmt.Errorf("set up reconciler of backups: %w", err)
	}
	scheduler := &backup.Scheduler{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(api.Manager), Skew: serverTime.Skew}
	if err := scheduler.SetupWithManager(mgr, o.concurrency); err != nil {
		return fmt.Errorf("set up reconciler of schedules: %w", err)
	}
	restores := &restore.Reconciler{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder(api.Manager), StallAfter: o.stallAfter}
	if err := restores.SetupWithManager(mgr, o.concurrency); err != nil {
		return fmt.Errorf("set up reconciler of restores: %w", err)
	}
	shared := users.Shared{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(api.Manager),
		Connect: r.Auth, Password: reconcile.ReadPassword, Authority: r.ClientAuthority, Skew: serverTime.Skew, Grant: r.Grant, StallAfter: o.stallAfter,
	}
	if err := (&users.RoleReconciler{Shared: shared}).SetupWithManager(mgr, o.concurrency); err != nil {
		return fmt.Errorf("set up reconciler of roles: %w", err)
	}
	if err := (&users.UserReconciler{Shared: shared}).SetupWithManager(mgr, o.concurrency); err != nil {
		return fmt.Errorf("set up reconciler of users: %w", err)
	}
	for _, collector := range collectors(mgr.GetClient(), r.Turns) {
		if err := metrics.Registry.Register(collector); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	log.Info("Starting operator", "version", built(), "watchNamespaces", o.watchNamespaces)
	return mgr.Start(ctx)
}

// collectors are the operator's own metrics, beside those of controller-runtime.
func collectors(cached client.Reader, turns func() (have, wait []types.NamespacedName)) []prometheus.Collector {
	return []prometheus.Collector{reconcile.Metrics{Reader: cached, Turns: turns}, backup.Metrics{Reader: cached}}
}

// manager is how the flags configure controller-runtime.
func (o *operatorOptions) manager() (ctrl.Options, error) {
	if o.concurrency < 1 { // nothing would ever be reconciled
		return ctrl.Options{}, fmt.Errorf("--max-concurrent-reconciles is %d, and must be 1 or more", o.concurrency)
	}
	scheme, err := kinds()
	if err != nil {
		return ctrl.Options{}, err
	}
	objects, err := o.cache()
	if err != nil {
		return ctrl.Options{}, err
	}
	served := metricsserver.Options{BindAddress: o.metricsAddress, SecureServing: o.metricsSecure}
	if o.metricsSecure {
		served.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return ctrl.Options{
		Scheme:                        scheme,
		Cache:                         objects,
		Metrics:                       served,
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionReleaseOnCancel: true, // safe, because the process ends when the manager does
		GracefulShutdownTimeout:       new(shutdown),
		Controller:                    config.Controller{ReconciliationTimeout: reconcile.PassTakes},
	}, nil
}

// kinds are those of Kubernetes and our own.
func kinds() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	all := runtime.SchemeBuilder{clientgoscheme.AddToScheme, api.AddToScheme}
	if err := all.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	return scheme, nil
}

// cache keeps in memory what the operator looks after, and of the other kinds only what carries its
// label: a cluster may hold ten thousand Pods of other people.
func (o *operatorOptions) cache() (cache.Options, error) {
	ours, err := labels.NewRequirement(api.LabelCluster, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("select objects: %w", err)
	}
	// Our own managedFields are read: of Pods and claims they tell what an apply would change, and
	// of an EtcdCluster when its status was written. Those of others are ballast, and so are all of
	// the kinds that are only compared.
	labelled := cache.ByObject{Label: labels.NewSelector().Add(*ours), Transform: onlyOurFields}
	light := cache.ByObject{Label: labelled.Label, Transform: cache.TransformStripManagedFields()}
	backups, err := labels.NewRequirement(api.LabelBackup, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("select Jobs: %w", err)
	}
	c := cache.Options{
		DefaultTransform: onlyOurFields,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   labelled,
			&corev1.PersistentVolumeClaim{}: labelled,
			&corev1.Service{}:               light,
			&policyv1.PodDisruptionBudget{}: light,
			&batchv1.Job{}:                  {Label: labels.NewSelector().Add(*backups), Transform: cache.TransformStripManagedFields()},
		},
	}
	if len(o.watchNamespaces) > 0 {
		c.DefaultNamespaces = map[string]cache.Config{}
	}
	for _, ns := range o.watchNamespaces {
		// An empty name, as of a trailing comma, would mean all namespaces to the cache.
		if problems := validation.IsDNS1123Label(ns); len(problems) > 0 {
			return cache.Options{}, fmt.Errorf("--watch-namespace %q: %s", ns, problems[0])
		}
		c.DefaultNamespaces[ns] = cache.Config{}
	}
	return c, nil
}

// onlyOurFields leaves of the managedFields of an object those of Quorate. A person who may write
// an object can add any number of others. What the cache has already is not written to: others read
// it.
func onlyOurFields(o any) (any, error) {
	object, is := o.(client.Object) // or it tells that one is gone
	ofOthers := func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager != api.Manager }
	if is && slices.ContainsFunc(object.GetManagedFields(), ofOthers) {
		object.SetManagedFields(slices.DeleteFunc(slices.Clone(object.GetManagedFields()), ofOthers))
	}
	return o, nil
}
