//! The numbers of stored rows, each of its kind.

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub(crate) i64);

        impl $name {
            /// Returns the stored number.
            pub fn number(self) -> i64 {
                self.0
            }
        }
    };
}

number_id! {
    /// Identifies a workspace: a host and a path on it.
    WorkspaceId
}
number_id! {
    /// Identifies a plan: a workspace and a path in it.
    PlanId
}

impl PlanId {
    /// Takes a number, which names a plan or nothing.
    pub fn of(number: i64) -> PlanId {
        PlanId(number)
    }
}

number_id! {
    /// Identifies an approval.
    ApprovalId
}
