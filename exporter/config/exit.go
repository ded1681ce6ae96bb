package config

// Help adds the exit codes to the help of the command.
func (Once) Help() string {
	return "Exit codes: 0 every expected device was read, or the machine has no accelerator; 1 an expected device was not read " +
		"(one line on stderr names the cause and its ID; \"gpumeter doctor\" says what to do); 2 the command line, the environment " +
		"or the config file is wrong, or --devices names a device that does not exist."
}

// Help adds the exit codes to the help of the command.
func (Doctor) Help() string {
	return "Exit codes: 0 nothing needs to be changed, also on a machine without accelerators; 1 there is a finding of severity " +
		"error or warning, or no report; 2 the command line, the environment or the config file is wrong."
}
