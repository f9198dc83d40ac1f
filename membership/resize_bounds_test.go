package membership

// ringBounds of the exploration. Within each, these may happen at any time and as often as they
// like: the operator crashes between any two effects, or cannot reach etcd; calls to etcd take
// effect late, or never; containers, volumes and etcd are slow; a learner catches up or does not;
// and where the bound says so, clients write, processes crash, and patience runs out.
var ringBounds = map[string]exploration[ringBound]{
	"Resized": {
		reason: "The size of three changes, and changes back, in the middle of everything",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, crashes: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 4}},
		takes:  seconds,
	},
	"ResizedFive": {
		reason: "One, three and five members",
		bound:  ringBound{sizes: []uint8{1, 3, 5}, first: 5, still: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 2}},
	},
	"Late": {
		reason: "Learners serve clients only after a while, and may crash before",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, late: true, crashes: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 3}},
	},
	"LateFive": {
		reason: "Two in a row, and back again",
		bound:  ringBound{sizes: []uint8{3, 5}, first: 3, late: true, still: true, one: true, crashes: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 2}},
	},
	"LateLosing": {
		reason: "The disk of one is lost meanwhile, and what does not come back is replaced",
		bound:  ringBound{sizes: []uint8{3}, first: 3, late: true, still: true, patience: true, wipes: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 2}},
	},
	"LateBehind": {
		reason: "An operator acts on old views of them",
		bound:  ringBound{sizes: []uint8{2, 3}, first: 2, size: 3, late: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 1, delays: 1}},
	},
	"LateMoved": {
		reason: "Members move, and their successors serve late",
		bound:  ringBound{sizes: []uint8{3}, first: 3, late: true, still: true, leads: true, one: true, crashes: true, calls: 1, states: 1_500_000, budget: ringBudget{kinds: 1}},
	},
	"Led": {
		reason: "It matters which member leads",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, slow: true, leads: true, crashes: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 2}},
		takes:  seconds,
	},
	"LedDeleted": {
		reason: "It matters which member leads, and a user deletes its volume",
		bound:  ringBound{sizes: []uint8{3}, first: 3, leads: true, claims: true, still: true, crashes: true, one: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1, kills: 1}},
		takes:  seconds,
	},
	"Deleted": {
		reason: "A user deletes a volume, and Pods",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, slow: true, claims: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1, kills: 1, specs: 1}},
		takes:  seconds,
	},
	"Copied": {
		reason: "A volume comes back as another object, is accepted or given up, while members crash and the size changes",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, copies: true, crashes: true, one: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1, kills: 1, specs: 1}},
		takes:  seconds,
	},
	"CopiedWriting": {
		reason: "Clients write meanwhile",
		bound:  ringBound{sizes: []uint8{3}, first: 3, copies: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1, kills: 1}},
	},
	"CopiedLosing": {
		reason: "Another one is lost beside it, and what does not come back is replaced",
		bound:  ringBound{sizes: []uint8{3}, first: 3, copies: true, claims: true, patience: true, still: true, beyond: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 2, kills: 1}},
		takes:  seconds,
	},
	"CopiedBehind": {
		reason: "An operator acts on old views, in which the volume is what it was",
		bound:  ringBound{sizes: []uint8{3}, first: 3, copies: true, still: true, safety: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1, kills: 1, delays: 1}},
		takes:  seconds,
	},
	"CopiedLearner": {
		reason: "A learner's volume, too",
		bound:  ringBound{sizes: []uint8{2, 3}, first: 2, copies: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 1, losses: 1, kills: 1}},
	},
	"CopiedFive": {
		reason: "Two of five come back as other objects, and one is lost",
		bound:  ringBound{sizes: []uint8{5}, first: 5, copies: true, claims: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 2, kills: 1}},
		takes:  minutes,
	},
	"DeletedAll": {
		reason: "A user deletes all volumes at once, and a Pod, while members serve",
		bound:  ringBound{sizes: []uint8{3}, first: 3, all: true, still: true, crashes: true, one: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1, kills: 1}},
		takes:  seconds,
	},
	"DeletedAllLed": {
		reason: "It matters which member leads",
		bound:  ringBound{sizes: []uint8{3}, first: 3, all: true, leads: true, still: true, crashes: true, one: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1}},
	},
	"DeletedAllResized": {
		reason: "The size changes meanwhile",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, all: true, still: true, crashes: true, one: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1, specs: 1}},
	},
	"DeletedGrowing": {
		reason: "All volumes are deleted while a third member comes, and again",
		bound:  ringBound{sizes: []uint8{3}, first: 2, size: 3, all: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 2}},
	},
	"DeletedOnly": {
		reason: "The volume of the only member is deleted, and those of its successors",
		bound:  ringBound{sizes: []uint8{1, 2}, first: 1, slow: true, claims: true, leads: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 2, specs: 1}},
		takes:  seconds,
	},
	"DeletedMoved": {
		reason: "The spec asks for other volumes meanwhile",
		bound:  ringBound{sizes: []uint8{2}, first: 2, claims: true, leads: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1, kinds: 1}},
	},
	"Stripped": {
		reason: "A claim is gone from under its Pod, finalizer and all",
		bound:  ringBound{sizes: []uint8{3}, first: 3, strips: true, still: true, leads: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 2}},
	},
	"Wiped": {
		reason: "The content of volumes is gone, and what does not come back is replaced",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, slow: true, patience: true, wipes: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 1, losses: 2}},
		takes:  seconds,
	},
	"Nodes": {
		reason: "A node is lost with what is on it, and comes back or does not",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, slow: true, patience: true, nodes: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 1, losses: 1}},
	},
	"Corrupt": {
		reason: "The data of one of three goes wrong, and etcd may accuse any member that runs",
		bound:  ringBound{sizes: []uint8{3}, first: 3, hashes: true, leads: true, still: true, crashes: true, one: true, calls: 1, states: 1_500_000, budget: ringBudget{corruptions: 1}},
	},
	"CorruptResized": {
		reason: "The same while the size changes",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, hashes: true, leads: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{corruptions: 1, specs: 1, kills: 1}},
	},
	"CorruptBeyond": {
		reason: "Two of three go wrong, in the same way or each in its own",
		bound:  ringBound{sizes: []uint8{3}, first: 3, hashes: true, leads: true, still: true, beyond: true, calls: 1, states: 1_500_000, budget: ringBudget{corruptions: 2, kills: 1}},
		takes:  seconds,
	},
	"Hands": {
		reason: "People change etcd's members behind the operator's back",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, one: true, crashes: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 1, hands: 2}},
	},
	"Retained": {
		reason: "The volumes of former members are kept",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, crashes: true, one: true, retain: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 3}},
	},
	"Behind": {
		reason: "An operator acts on old views, beside one that does not",
		bound:  ringBound{sizes: []uint8{1, 2}, first: 1, slow: true, size: 2, still: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 1, delays: 1}},
	},
	"BackOff": {
		reason: "Processes are killed faster than their kubelets start them again, and the operator may reach none",
		bound:  ringBound{sizes: []uint8{3}, first: 3, backOff: true, crashes: true, slow: true, calls: 1, states: 1_500_000, budget: ringBudget{kills: 1}},
	},
	"BackOffLosing": {
		reason: "The same, and a user deletes a volume",
		bound:  ringBound{sizes: []uint8{3}, first: 3, names: 5, backOff: true, crashes: true, claims: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1}},
		takes:  seconds,
	},
	"BackOffBehind": {
		reason: "The same of two, and an operator acts on old views",
		bound:  ringBound{sizes: []uint8{2}, first: 2, backOff: true, crashes: true, slow: true, calls: 1, states: 1_500_000, budget: ringBudget{kills: 1, delays: 1}},
	},
	"Marked": {
		reason: "The node controller gives up nodes whose members serve, and a disk is wiped",
		bound:  ringBound{sizes: []uint8{3}, first: 3, names: 5, marks: true, wipes: true, patience: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1}},
	},
	"BehindTwice": {
		reason: "An operator acts on old views, while the size changes back and forth",
		bound:  ringBound{sizes: []uint8{1, 2}, first: 1, size: 2, still: true, safety: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 2, delays: 1}},
	},
	"BeyondOne": {
		reason: "The only member is lost while it becomes three",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 1, slow: true, wipes: true, claims: true, still: true, beyond: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 1, losses: 1}},
	},
	"Moved": {
		reason: "The spec asks for other volumes, and back, in the middle of everything",
		bound:  ringBound{sizes: []uint8{3}, first: 3, still: true, crashes: true, one: true, calls: 1, states: 1_500_000, budget: ringBudget{kinds: 2}},
		takes:  seconds,
	},
	"MovedOne": {
		reason: "The same of one member, which may become two",
		bound:  ringBound{sizes: []uint8{1, 2}, first: 1, calls: 1, states: 1_500_000, budget: ringBudget{kinds: 2, specs: 1}},
	},
	"MovedLed": {
		reason: "It matters which member leads",
		bound:  ringBound{sizes: []uint8{3}, first: 3, leads: true, still: true, crashes: true, one: true, calls: 1, states: 1_500_000, budget: ringBudget{kinds: 1}},
	},
	"MovedBehind": {
		reason: "An operator acts on old views, and makes the volumes of an earlier spec",
		bound:  ringBound{sizes: []uint8{1}, first: 1, still: true, safety: true, calls: 1, states: 1_500_000, budget: ringBudget{kinds: 2, delays: 1}},
	},

	"MovedResized": {
		reason: "Volumes and size change, while clients write and processes crash",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, crashes: true, calls: 1, states: 1_500_000, budget: ringBudget{kinds: 1, specs: 1}},
		takes:  minutes,
	},
	"MovedLosing": {
		reason: "Members move, and one loses its volume",
		bound:  ringBound{sizes: []uint8{3}, first: 3, still: true, slow: true, claims: true, calls: 1, states: 1_500_000, budget: ringBudget{kinds: 1, losses: 1}},
		takes:  minutes,
	},
	"BackOffBehindThree": {
		reason: "Three are killed faster than their kubelets start them again, and an operator acts on old views",
		bound:  ringBound{sizes: []uint8{3}, first: 3, backOff: true, crashes: true, still: true, safety: true, calls: 1, states: 1_500_000, budget: ringBudget{delays: 1}},
		takes:  minutes,
	},
	"BehindThree": {
		reason: "An operator acts on old views of three members that lose a volume and Pods",
		bound:  ringBound{sizes: []uint8{3}, first: 3, claims: true, wipes: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1, kills: 1, delays: 1}},
		takes:  minutes,
	},
	"BehindGrown": {
		reason: "An operator acts on old views while one member becomes three",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 1, still: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 1, delays: 1}},
		takes:  minutes,
	},
	"WipedCrashing": {
		reason: "A disk is wiped, processes crash, and clients write",
		bound:  ringBound{sizes: []uint8{3}, first: 3, names: 5, patience: true, crashes: true, one: true, wipes: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1}},
		takes:  minutes,
	},
	"DeletedCrashing": {
		reason: "A volume and a Pod are deleted, processes crash one at a time, and clients write",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, names: 5, crashes: true, one: true, claims: true, calls: 1, states: 6_000_000, budget: ringBudget{losses: 1, kills: 1, specs: 2}},
		takes:  minutes,
	},
	"LedDeletedCrashing": {
		reason: "It matters which member leads, a user deletes its volume, any process crashes, and clients write",
		bound:  ringBound{sizes: []uint8{3}, first: 3, leads: true, claims: true, crashes: true, calls: 1, states: 6_000_000, budget: ringBudget{losses: 1, kills: 1}},
		takes:  minutes,
	},
	"DeletedAllCrashing": {
		reason: "All volumes and a Pod are deleted, the size changes, processes crash, and clients write",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, all: true, crashes: true, calls: 1, states: 3_000_000, budget: ringBudget{losses: 1, kills: 1, specs: 1}},
		takes:  minutes,
	},
	"DeletedAllFive": {
		reason: "All volumes of five are deleted, and a Pod",
		bound:  ringBound{sizes: []uint8{5}, first: 5, all: true, still: true, crashes: true, one: true, calls: 1, states: 3_000_000, budget: ringBudget{losses: 1, kills: 1}},
		takes:  minutes,
	},
	"DeletedBehind": {
		reason: "An operator acts on old views of members whose volumes are deleted",
		bound:  ringBound{sizes: []uint8{2}, first: 2, all: true, still: true, safety: true, calls: 1, states: 3_000_000, budget: ringBudget{losses: 1, delays: 1}},
		takes:  minutes,
	},
	"FiveLosing": {
		reason: "Five members, one of whose volumes is deleted while others crash, one at a time",
		bound:  ringBound{sizes: []uint8{3, 5}, first: 5, crashes: true, one: true, claims: true, still: true, calls: 1, states: 8_000_000, budget: ringBudget{specs: 1, losses: 1, kills: 1}},
		takes:  minutes,
	},
	"BeyondThree": {
		reason: "More of three is lost than a cluster survives, and what is left is told",
		bound:  ringBound{sizes: []uint8{1, 3}, first: 3, patience: true, nodes: true, wipes: true, claims: true, still: true, beyond: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 1, losses: 2}},
		takes:  minutes,
	},
	"Five": {
		reason: "Five members, two of which lose their disks",
		bound:  ringBound{sizes: []uint8{3, 5}, first: 5, wipes: true, patience: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 1, losses: 2}},
		takes:  minutes,
	},
	"FiveCrashing": {
		reason: "Five members, that crash one after the other while the size changes",
		bound:  ringBound{sizes: []uint8{3, 5}, first: 5, crashes: true, one: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{specs: 2}},
		takes:  minutes,
	},
	"FiveWriting": {
		reason: "Five members, while clients write and a disk is lost",
		bound:  ringBound{sizes: []uint8{5}, first: 5, wipes: true, patience: true, calls: 1, states: 1_500_000, budget: ringBudget{losses: 1}},
		takes:  minutes,
	},
	"CorruptFive": {
		reason: "Two of five go wrong, one after the other or at once",
		bound:  ringBound{sizes: []uint8{5}, first: 5, hashes: true, leads: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{corruptions: 2}},
		takes:  minutes,
	},
	"CorruptFiveKilled": {
		reason: "One of five goes wrong, and a Pod is deleted, as of the one that has fed a learner",
		bound:  ringBound{sizes: []uint8{5}, first: 5, hashes: true, leads: true, still: true, calls: 1, states: 1_500_000, budget: ringBudget{corruptions: 1, kills: 1}},
		takes:  minutes,
	},
	"CorruptLosing": {
		reason: "One of three goes wrong, and one loses its disk, or patience with it runs out",
		bound:  ringBound{sizes: []uint8{3}, first: 3, hashes: true, leads: true, still: true, wipes: true, patience: true, beyond: true, calls: 1, states: 4_000_000, budget: ringBudget{corruptions: 1, losses: 1}},
		takes:  minutes,
	},
}
