/** The garbage collector lets dependents go before the object itself goes. */
export const orphanFinalizer = "orphan";
/** The garbage collector deletes dependents before the object itself goes. */
export const foregroundFinalizer = "foregroundDeletion";
