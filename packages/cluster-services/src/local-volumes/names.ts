/** Provisioner in StorageClasses and annotations. */
export const provisioner = "services.coxswain/local";
/** The StorageClass that is made. */
export const className = "local";
