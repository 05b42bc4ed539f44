/** Annotations by which binder, scheduler and provisioners talk to each other. Source: pkg/controller/volume/persistentvolume/util */

/** On a claim: it has been bound once. What is found missing later is lost, not new. */
export const bindCompleted = "pv.kubernetes.io/bind-completed";
/** On a claim or a volume: the binding was made by a controller, not by a user, and may be undone by one. */
export const boundByController = "pv.kubernetes.io/bound-by-controller";
/** On a volume: the plugin that made it. */
export const provisionedBy = "pv.kubernetes.io/provisioned-by";
/** On claims and volumes of in-tree plugins: the CSI driver that has taken over. */
export const migratedTo = "pv.kubernetes.io/migrated-to";
/** On a claim: the provisioner that is to make its volume, under its name of today and that of before. */
export const storageProvisioner = "volume.kubernetes.io/storage-provisioner";
export const betaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner";
/** On a claim that waits for its first consumer: the node that the scheduler chose. */
export const selectedNode = "volume.kubernetes.io/selected-node";
/** On a claim that is growing: who makes its volume larger. */
export const storageResizer = "volume.kubernetes.io/storage-resizer";
/** On claims and volumes: the class, from before there was a field; it beats the field. */
export const betaStorageClass = "volume.beta.kubernetes.io/storage-class";
/** On a volume: its size before it grew, until the file system on it has grown too. */
export const preResizeCapacity = "volume.alpha.kubernetes.io/pre-resize-capacity";
