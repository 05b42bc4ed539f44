/** The garbage collector orphans dependents before the object is deleted. */
export const orphanFinalizer = "orphan";
/** The garbage collector deletes dependents before the object is deleted. */
export const foregroundFinalizer = "foregroundDeletion";
