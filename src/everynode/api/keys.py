"""Keys: all well-known labels, annotations, conditions, readiness gates and taints."""

from __future__ import annotations

from typing import Final

# Groups, versions, kinds
KRUISE_GROUP: Final = "apps.kruise.io"
NATIVE_GROUP: Final = "apps"
KIND: Final = "DaemonSet"
V1ALPHA1: Final = "apps.kruise.io/v1alpha1"
V1BETA1: Final = "apps.kruise.io/v1beta1"
APPS_V1: Final = "apps/v1"

# Labels and annotations of the native DaemonSet
REVISION_HASH: Final = "controller-revision-hash"
POD_TEMPLATE_GENERATION: Final = "pod-template-generation"
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
CHANGE_CAUSE: Final = "kubernetes.io/change-cause"

# Keys of the Advanced DaemonSet
PROGRESSIVE_CREATE: Final = "daemonset.kruise.io/progressive-create-pod"
LIFECYCLE_STATE: Final = "lifecycle.apps.kruise.io/state"
LIFECYCLE_TIMESTAMP: Final = "lifecycle.apps.kruise.io/timestamp"
PREPARING_DELETE: Final = "PreparingDelete"
INPLACE_STATE: Final = "apps.kruise.io/inplace-update-state"
INPLACE_STATE_OLD: Final = "inplace-update-state"
INPLACE_GRACE: Final = "apps.kruise.io/inplace-update-grace"
INPLACE_GRACE_OLD: Final = "inplace-update-grace"
PREDOWNLOAD_PARALLELISM: Final = "apps.kruise.io/image-predownload-parallelism"
PREDOWNLOAD_TIMEOUT: Final = "apps.kruise.io/image-predownload-timeout-seconds"
PREDOWNLOAD_MIN_UPDATED_READY: Final = "apps.kruise.io/image-predownload-min-updated-ready-pods"

# Readiness gates and pod conditions
READY: Final = "Ready"
CONTAINERS_READY: Final = "ContainersReady"
INPLACE_UPDATE_READY: Final = "InPlaceUpdateReady"
KRUISE_POD_READY: Final = "KruisePodReady"

# Finalizers of the garbage collector
FOREGROUND_DELETION: Final = "foregroundDeletion"
ORPHAN_DEPENDENTS: Final = "orphan"

# The only field of a node that match_fields can select
NODE_NAME_FIELD: Final = "metadata.name"

# Our own keys
FROM_REVISION: Final = "everynode.io/from-revision"
TARGET_GENERATION: Final = "everynode.io/target-generation"
COMPLETED: Final = "everynode.io/completed"
FAILURES: Final = "everynode.io/failures"
REPLACED_SICK: Final = "everynode.io/replaced-sick"
PULL_POD_OWNER: Final = "everynode.io/puller"
PULLED: Final = "everynode.io/pulled"
# On pods of the Advanced kind: cluster-autoscaler then treats them as it treats native daemon pods.
AUTOSCALER_DAEMON_POD: Final = "cluster-autoscaler.kubernetes.io/daemonset-pod"
FIELD_MANAGER: Final = "everynode"
CLI_FIELD_MANAGER: Final = "everynode-cli"  # of what people change by a command
# Where the controller is installed unless another namespace is chosen.
CONTROLLER_NAMESPACE: Final = "everynode-system"

# Kubernetes' alphabet for generated names: no vowels, so that no words are formed
NAME_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"

# The priority classes that every cluster has
SYSTEM_PRIORITIES: Final = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}

# Taints of the node controller
TAINT_NOT_READY: Final = "node.kubernetes.io/not-ready"
TAINT_UNREACHABLE: Final = "node.kubernetes.io/unreachable"
TAINT_DISK_PRESSURE: Final = "node.kubernetes.io/disk-pressure"
TAINT_MEMORY_PRESSURE: Final = "node.kubernetes.io/memory-pressure"
TAINT_PID_PRESSURE: Final = "node.kubernetes.io/pid-pressure"
TAINT_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
TAINT_NETWORK_UNAVAILABLE: Final = "node.kubernetes.io/network-unavailable"

# Node lifecycle conditions (KEP-5683, Kubernetes 1.37), the most urgent first
NODE_SHUTDOWN: Final = "GracefulNodeShutdownInProgress"
MAINTENANCE_PLANNED: Final = "MaintenancePlanned"
NODE_LIFECYCLE: Final = (
    NODE_SHUTDOWN,
    "MaintenanceInProgress",
    "DrainInProgress",
    "Drained",
    MAINTENANCE_PLANNED,
)
