/// What an event of the poller is about. Serials are never used again, so a late event finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    Input,
    Output,
    /// Some file of a cgroup has changed.
    Changes,
    /// By index of the world.
    Keeper(u32),
    /// By serial of the exec.
    Stdin(u32),
    Stdout(u32),
    Stderr(u32),
    /// By id of the stream: the pipe that its bytes come from or go to.
    Stream(u32),
    /// A listener of the relay.
    Relay,
}

impl Token {
    pub fn pack(self) -> u64 {
        let (kind, number): (u64, u32) = match self {
            Token::Input => (0, 0),
            Token::Output => (1, 0),
            Token::Changes => (2, 0),
            Token::Keeper(world) => (3, world),
            Token::Stdin(exec) => (4, exec),
            Token::Stdout(exec) => (5, exec),
            Token::Stderr(exec) => (6, exec),
            Token::Stream(stream) => (7, stream),
            Token::Relay => (8, 0),
        };
        kind << 32 | u64::from(number)
    }

    pub fn unpack(packed: u64) -> Option<Token> {
        let number = packed as u32;
        Some(match packed >> 32 {
            0 => Token::Input,
            1 => Token::Output,
            2 => Token::Changes,
            3 => Token::Keeper(number),
            4 => Token::Stdin(number),
            5 => Token::Stdout(number),
            6 => Token::Stderr(number),
            7 => Token::Stream(number),
            8 => Token::Relay,
            _ => return None,
        })
    }
}
