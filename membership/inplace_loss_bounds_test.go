package membership

// swapLossBounds are those of a cluster that asks for what is done where a majority is lost.
var swapLossBounds = map[string]exploration[swapBound]{
	"OneLoss": {
		reason: "The only volume is lost, and another one after the cluster was restored by itself; a person deletes the EtcdRestores",
		bound:  swapBound{size: 1, onLoss: true, states: 400_000, budget: swapBudget{losses: 2, kills: 2}},
	},
	"OneLossUnseen": {
		reason: "What was created is deleted before it is seen, and is created once more",
		bound:  swapBound{size: 1, onLoss: true, states: 400_000, budget: swapBudget{losses: 1, kills: 1, unseen: 1}},
	},
	"OneLossAsked": {
		reason: "A person makes an EtcdRestore too",
		bound:  swapBound{size: 1, onLoss: true, states: 400_000, budget: swapBudget{losses: 1, kills: 1, restores: 1}},
	},
	"OneLossEmpty": {
		reason: "The volume seems to be empty, and is not; its Pod goes",
		bound:  swapBound{size: 1, onLoss: true, states: 400_000, budget: swapBudget{empties: 1, kills: 1}},
	},
	"OneLossWiped": {
		reason: "The status is wiped at any time",
		bound:  swapBound{size: 1, onLoss: true, states: 400_000, budget: swapBudget{empties: 1, kills: 1, statusWipes: 1}},
	},
	"OneLossStale": {
		reason: "An operator acts on an old EtcdCluster, or has paused",
		bound:  swapBound{size: 1, onLoss: true, behind: []staleness{oldCluster, oldDecision}, late: Recover, safety: true, states: 400_000, budget: swapBudget{empties: 1, delays: 1}},
	},
	"OneLossStaleAny": {
		reason: "An operator acts on any old view",
		bound:  swapBound{size: 1, onLoss: true, safety: true, states: 4_000_000, budget: swapBudget{empties: 1, delays: 1}},
		takes:  minutes,
	},
	"OneLossStalePods": {
		reason: "An operator acts on old Pods",
		bound:  swapBound{size: 1, onLoss: true, behind: []staleness{oldPods}, safety: true, states: 400_000, budget: swapBudget{empties: 1, delays: 1}},
	},
	"OneLossStaleTaken": {
		reason: "An operator that has paused would go on when what was created was taken back, or carried out",
		bound:  swapBound{size: 1, onLoss: true, behind: []staleness{oldDecision}, late: Recover, safety: true, states: 400_000, budget: swapBudget{losses: 2, kills: 2, delays: 1}},
	},
	"TwoLoss": {
		reason: "One of two volumes is lost. Were one of the two a learner, none would be: nothing is created",
		bound:  swapBound{size: 2, onLoss: true, lost: 1, states: 400_000, budget: swapBudget{offs: 1, kills: 1}},
	},
	"ThreeLossAll": {
		reason: "All volumes are lost, and the cluster is restored from a snapshot by itself",
		bound:  swapBound{size: 3, onLoss: true, lost: 3, breaks: true, states: 400_000},
	},
	"ThreeLossEmpty": {
		reason: "One of three volumes is lost, and another one seems to be empty, and is not; their nodes go off",
		bound:  swapBound{size: 3, onLoss: true, lost: 1, states: 400_000, budget: swapBudget{empties: 1, offs: 1}},
	},
	"ThreeLossSurvivor": {
		reason: "The same, and the data of the one that is left is restored",
		bound:  swapBound{size: 3, survivor: true, onLoss: true, lost: 1, states: 400_000, budget: swapBudget{empties: 1, kills: 1}},
	},
	"ThreeLossFaults": {
		reason: "Of three members any two seem to be empty, or one is lost; a Pod goes, and a node goes off",
		bound:  swapBound{size: 3, survivor: true, onLoss: true, states: 4_000_000, budget: swapBudget{losses: 1, empties: 2, kills: 1, offs: 1}},
		takes:  minutes,
	},
	"OneLossFaults": {
		reason: "A volume is lost, and one seems to be; its Pod goes, and what was created is deleted, also before it is seen",
		bound:  swapBound{size: 1, onLoss: true, states: 4_000_000, budget: swapBudget{losses: 1, empties: 1, kills: 1, unseen: 1}},
	},
	"OneLossLate": {
		reason: "A request for a member arrives late",
		bound:  swapBound{size: 1, onLoss: true, states: 400_000, budget: swapBudget{empties: 1, kills: 1, flights: 1}},
	},
	"OneLossFaultsAsked": {
		reason: "The same, the node goes off too, and a person makes an EtcdRestore",
		bound:  swapBound{size: 1, onLoss: true, states: 4_000_000, budget: swapBudget{losses: 1, empties: 1, kills: 1, offs: 1, restores: 1}},
		takes:  minutes,
	},
	"ThreeLoss": {
		reason: "Of three members one is left, which is restored by itself; its node goes off and comes back",
		bound:  swapBound{size: 3, survivor: true, onLoss: true, lost: 2, states: 400_000, budget: swapBudget{offs: 1}},
	},
	"ThreeLossOff": {
		reason: "One of three members has lost its volume, and the nodes of the others go off: no majority is lost",
		bound:  swapBound{size: 3, onLoss: true, lost: 1, states: 400_000, budget: swapBudget{offs: 2}},
	},
}
