package membership

// rollBounds of the exploration. Within each, these may happen at any time and as often as they
// like: the operator crashes between any two effects, or cannot reach the members; kubelets and
// etcd are slow, the cluster's version and the data follow what runs late or soon; and where the
// budget says so, the spec changes, processes end or Pods are deleted, a volume is lost, the
// leadership moves, an alarm is raised, and an operator is slow to carry out what it has decided,
// beside one that is not.
var rollBounds = map[string]exploration[rollBound]{
	"One": {
		reason: "One member, by any way",
		bound:  rollBound{size: 1, from: rollEarly, specs: []rollVersion{rollEarly, roll35, rollEarly36, roll36, roll37}, options: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 2}},
	},
	"OneAnew": {
		reason: "One member, with options that another minor calls by another name",
		bound:  rollBound{size: 1, from: roll35, specs: []rollVersion{roll35, roll36, roll37}, options: true, recreates: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 2}},
	},
	"OneBroken": {
		reason: "One member, and an image in the middle of the way that does not come up",
		bound:  rollBound{size: 1, from: roll35, specs: []rollVersion{roll35, roll37}, broken: []rollVersion{roll36}, options: true, mends: true, putsOff: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 2}},
	},
	"OneSlow": {
		reason: "One member, and an operator that is slow",
		bound:  rollBound{size: 1, from: roll35, specs: []rollVersion{roll35, roll36, roll37}, options: true, putsOff: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 2, delays: 1}},
	},
	"Two": {
		reason: "Of two members none can be spared",
		bound:  rollBound{size: 2, from: roll36, specs: []rollVersion{roll35, roll36, roll37}, options: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 2}},
	},
	"Up": {
		reason: "Three members, up over two minors and back at any point",
		bound:  rollBound{size: 3, from: rollEarly, specs: []rollVersion{roll35, roll36, roll37}, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
		takes:  seconds,
	},
	"Down": {
		reason: "Three members, down a minor and back at any point, with another leader",
		bound:  rollBound{size: 3, from: roll37, specs: []rollVersion{roll35, roll36, roll37}, putsOff: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1, moves: 1}},
		takes:  seconds,
	},
	"Recreated": {
		reason: "Three members, whose Pods are recreated",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll35, roll36, roll37}, options: true, recreates: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2}},
	},
	"Lost": {
		reason: "A member of three is lost in the middle of a change",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll35, roll36, roll37}, states: 1_500_000, budget: rollBudget{specs: 2, losses: 1, alarms: 1}},
		takes:  seconds,
	},
	"LostOfFive": {
		reason: "A member of five is lost in the middle of a change",
		bound:  rollBound{size: 5, from: roll36, specs: []rollVersion{roll37}, states: 1_500_000, budget: rollBudget{specs: 1, losses: 1}},
		takes:  seconds,
	},
	"Broken": {
		reason: "An image does not come up",
		bound:  rollBound{size: 3, from: roll35, specs: []rollVersion{roll35, roll36}, broken: []rollVersion{roll36}, mends: true, putsOff: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"BrokenDown": {
		reason: "The image of an earlier minor does not come up",
		bound:  rollBound{size: 3, from: roll37, specs: []rollVersion{roll36, roll37}, broken: []rollVersion{roll36}, mends: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"OneWrong": {
		reason: "One member, with options with which etcd does not start, and such with which it does not any more",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36}, options: true, wrong: true, spoils: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 2}},
	},
	"OneWrongAnew": {
		reason: "One member, with such options that another minor calls by another name, and an image that does not come up",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, broken: []rollVersion{roll37}, options: true, recreates: true, wrong: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 2}},
	},
	"OneWrongSlow": {
		reason: "One member, with such options, and an operator that is slow",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, wrong: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1, delays: 1}},
	},
	"OneUnmarked": {
		reason: "One member, whose volume does not say with which options it has served",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, unmarked: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 2}},
	},
	"Wrong": {
		reason: "Three members, and options with which etcd does not start",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36}, options: true, wrong: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"OneMute": {
		reason: "One member, and options with which etcd runs and never serves",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, wrong: true, mute: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 1, delays: 1}},
	},
	"Mute": {
		reason: "Three members, and options with which etcd runs and never serves",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36}, options: true, wrong: true, mute: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"MuteVersion": {
		reason: "Three members, such options, and another minor",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll37}, options: true, wrong: true, mute: true, states: 1_500_000, budget: rollBudget{specs: 2}},
	},
	"LastBroken": {
		reason: "An image in the middle of the way comes up on every node but one, whose member is changed last",
		bound:  rollBound{size: 3, from: roll35, specs: []rollVersion{roll35, roll37}, broken: []rollVersion{roll36}, onOne: true, mends: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"OneHangs": {
		reason: "One member, and an image and options with which a process runs and never serves, for as long as a large log may take",
		bound:  rollBound{size: 1, from: roll35, specs: []rollVersion{roll35, roll37}, broken: []rollVersion{roll36}, options: true, wrong: true, mute: true, patient: true, mends: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"LastHangs": {
		reason: "Three members, and such an image in the middle of the way, on the node of the last one alone",
		bound:  rollBound{size: 3, from: roll35, specs: []rollVersion{roll35, roll37}, broken: []rollVersion{roll36}, onOne: true, mute: true, patient: true, mends: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"OneUnstarted": {
		reason: "One member, and options with which its kubelet starts no etcd, and does not say why",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, wrong: true, unstarted: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 1, delays: 1}},
	},
	"Unstarted": {
		reason: "Three members, and such options",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36}, options: true, wrong: true, unstarted: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"OnePassing": {
		reason: "One member, and options with which etcd answers now and then, and ends again",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, passing: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 1}},
	},
	"OnePassingSlow": {
		reason: "One member, with such options, and an operator that is slow",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, passing: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1, delays: 1}},
	},
	"Passing": {
		reason: "Three members, and options with which etcd answers now and then, and ends again",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36}, options: true, passing: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"WrongLost": {
		reason: "A member of three is lost while such options are tried",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, wrong: true, states: 1_500_000, budget: rollBudget{specs: 1, losses: 1}},
	},
	"Mislabelled": {
		reason: "An image holds something else than its name says",
		bound:  rollBound{size: 3, from: rollEarly, specs: []rollVersion{rollEarly, roll35, roll36}, lies: true, states: 1_500_000, budget: rollBudget{specs: 2}},
	},
	"Lagging": {
		reason: "A changed member has to catch up",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, lags: true, led: true, states: 1_500_000, budget: rollBudget{specs: 2}},
	},
	"Slow": {
		reason: "Three members, and an operator that is slow",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 1, crashes: 1, delays: 1}},
	},
	"SlowDown": {
		reason: "Three members go up and down, and an operator is slow",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll35, roll36, roll37}, states: 1_500_000, budget: rollBudget{specs: 2, delays: 1}},
	},
	"OneFull": {
		reason: "One member, whose database reaches its quota",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, sized: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1, alarms: 2}},
	},
	"Full": {
		reason: "Three members, whose databases reach their quota",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36}, options: true, sized: true, states: 1_500_000, budget: rollBudget{specs: 2, alarms: 2}},
	},
	"FullWhileChanged": {
		reason: "Three members come to another version while their databases reach their quota",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, sized: true, states: 1_500_000, budget: rollBudget{specs: 2, alarms: 1}},
		takes:  seconds,
	},
	"OneGuarded": {
		reason: "One member, and a snapshot before its version changes, which may fail",
		bound:  rollBound{size: 1, from: rollEarly, specs: []rollVersion{roll35, roll36, roll37}, options: true, kills: true, guarded: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1, delays: 1}},
	},
	"Guarded": {
		reason: "Three members go up and down, and a snapshot before their version changes may fail",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll35, roll36, roll37}, kills: true, guarded: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
		takes:  seconds,
	},
	"GuardedBroken": {
		reason: "The same where an image does not come up",
		bound:  rollBound{size: 3, from: roll35, specs: []rollVersion{roll35, roll36}, broken: []rollVersion{roll36}, mends: true, guarded: true, states: 1_500_000, budget: rollBudget{specs: 2}},
	},
	"OneRefused": {
		reason: "One member, and an API server that refuses any kind of write",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, refuses: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"OneRefusedWrong": {
		reason: "The same, with options with which etcd does not start",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, wrong: true, refuses: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"OneRefusedKilled": {
		reason: "The same, while a person deletes the Pod",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36}, options: true, wrong: true, refuses: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 2}},
	},
	"OneRefusedUnseen": {
		reason: "The same, while the spec may ask for another minor, which may run unseen",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, refuses: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 2}},
	},
	"OneFades": {
		reason: "One member, and an image that has come up, and does not any more, or later again",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, fades: []rollVersion{roll37}, mends: true, options: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 2}},
	},
	"OneFadesPatch": {
		reason: "The same, while the spec may ask for another patch or minor",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, rollEarly36, roll37}, fades: []rollVersion{roll36}, mends: true, options: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 2}},
	},
	"FadesPatch": {
		reason: "The same of three members, two of which may be down at a time",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36, rollEarly36, roll37}, fades: []rollVersion{roll36}, mends: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"OneFadesEarlier": {
		reason: "The same from 3.5, up to any minor and down again",
		bound:  rollBound{size: 1, from: roll35, specs: []rollVersion{roll35, roll36, roll37}, fades: []rollVersion{roll36}, mends: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 1}},
	},
	"Fades": {
		reason: "The same of three members",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36, roll37}, fades: []rollVersion{roll37}, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
	},
	"OneInMemory": {
		reason: "One member with its data in memory, and an image that has come up, and does not any more, or later again",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, rollEarly36, roll37}, memory: true, fades: []rollVersion{roll36, roll37}, mends: true, putsOff: true, refuses: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 2, delays: 1}},
	},
	"OneInMemoryUnpulled": {
		reason: "The same where it cannot be pulled any more, from 3.5 up to any minor, and to other patches",
		bound:  rollBound{size: 1, from: roll35, specs: []rollVersion{roll35, roll36, rollEarly36, roll37}, memory: true, fades: []rollVersion{roll36}, unpulled: true, mends: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 2}},
	},
	"OneInMemoryBroken": {
		reason: "One member with its data in memory, and an image in the middle of the way that does not come up",
		bound:  rollBound{size: 1, from: roll35, specs: []rollVersion{roll35, roll37}, memory: true, broken: []rollVersion{roll36}, mends: true, putsOff: true, states: 1_500_000, budget: rollBudget{specs: 3, crashes: 2, delays: 1}},
	},
	"InMemory": {
		reason: "Three members with their data in memory, and an image that has come up, and does not any more, or later again",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36, rollEarly36, roll37}, memory: true, fades: []rollVersion{roll36, roll37}, mends: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
		takes:  seconds,
	},
	"OneUnpulled": {
		reason: "One member, and an image that cannot be pulled any more, or later again, while the spec may ask for another patch or minor",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, rollEarly36, roll37}, fades: []rollVersion{roll36}, unpulled: true, mends: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 2}},
	},
	"Unpulled": {
		reason: "The same of three members, and another patch alone",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36, rollEarly36}, fades: []rollVersion{roll36}, unpulled: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 2}},
	},
	"OneSilent": {
		reason: "One member, whose node falls silent at any moment, and hears later, or never",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, kills: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1, silences: 2}},
	},
	"OneSilentSlow": {
		reason: "The same, and an operator that is slow",
		bound:  rollBound{size: 1, from: roll36, specs: []rollVersion{roll36, roll37}, states: 1_500_000, budget: rollBudget{specs: 2, delays: 1, silences: 1}},
	},
	"Silent": {
		reason: "Three members, one of whose nodes falls silent at any moment, and hears later, or never",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36, roll37}, states: 1_500_000, budget: rollBudget{specs: 2, silences: 1}},
	},
	"Refused": {
		reason: "Three members, and an API server that refuses any kind of write",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, refuses: true, states: 1_500_000, budget: rollBudget{specs: 2, crashes: 1}},
		takes:  seconds,
	},

	"SilentDown": {
		reason: "Three members go up and down, the nodes of two fall silent, and one crashes",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll35, roll36, roll37}, options: true, kills: true, states: 6_000_000, budget: rollBudget{specs: 2, crashes: 1, silences: 2}},
		takes:  minutes,
	},
	"UpAndDown": {
		reason: "Three members go anywhere, while a member crashes and another one is lost",
		bound:  rollBound{size: 3, from: roll35, specs: []rollVersion{roll35, roll36, roll37}, kills: true, states: 6_000_000, budget: rollBudget{specs: 3, crashes: 1, losses: 1}},
		takes:  minutes,
	},
	"SlowBroken": {
		reason: "An image does not come up, and an operator is slow",
		bound:  rollBound{size: 3, from: roll35, specs: []rollVersion{roll35, roll36}, broken: []rollVersion{roll36}, mends: true, options: true, kills: true, states: 6_000_000, budget: rollBudget{specs: 2, crashes: 1, delays: 1}},
		takes:  minutes,
	},
	"SlowWrong": {
		reason: "Three members, options with which etcd does not start, and an operator that is slow",
		bound:  rollBound{size: 3, from: roll36, specs: []rollVersion{roll36, roll37}, options: true, wrong: true, kills: true, states: 6_000_000, budget: rollBudget{specs: 2, crashes: 1, delays: 1}},
		takes:  minutes,
	},
	"Five": {
		reason: "Five members go up and down, one of which is lost",
		bound:  rollBound{size: 5, from: roll36, specs: []rollVersion{roll35, roll36, roll37}, states: 6_000_000, budget: rollBudget{specs: 2, losses: 1}},
		takes:  minutes,
	},
}
