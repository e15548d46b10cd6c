# The targets that `sam build` runs: build-NAME for each function of template.yaml,
# whose folder in functions/ is NAME in lower case. ARTIFACTS_DIR, which SAM sets,
# is where the program goes.
build-%:
	$(CLOUD) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/$(shell tr A-Z a-z <<< $*)
