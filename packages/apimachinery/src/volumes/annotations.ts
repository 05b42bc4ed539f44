/** Annotations shared by volume binder, scheduler and provisioners. Source: pkg/controller/volume/persistentvolume/util */

/** On a claim: binding was completed. If its volume is missing later, the claim is lost. */
export const bindCompleted = "pv.kubernetes.io/bind-completed";
/** On a claim or volume: the binding was made by a controller, not by a user, and may be reverted by a controller. */
export const boundByController = "pv.kubernetes.io/bound-by-controller";
/** On a volume: the plugin that provisioned it. */
export const provisionedBy = "pv.kubernetes.io/provisioned-by";
/** On claims and volumes of in-tree plugins: the CSI driver they are migrated to. */
export const migratedTo = "pv.kubernetes.io/migrated-to";
/** On a claim: the provisioner of its volume; current and beta annotation. */
export const storageProvisioner = "volume.kubernetes.io/storage-provisioner";
export const betaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner";
/** On a WaitForFirstConsumer claim: the node that the scheduler selected. */
export const selectedNode = "volume.kubernetes.io/selected-node";
/** On a claim that is being resized: the resizer responsible. */
export const storageResizer = "volume.kubernetes.io/storage-resizer";
/** On claims and volumes: the storage class; predates `storageClassName` and takes precedence over it. */
export const betaStorageClass = "volume.beta.kubernetes.io/storage-class";
/** On a volume: its capacity before a resize, until the file system is resized, too. */
export const preResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity";
