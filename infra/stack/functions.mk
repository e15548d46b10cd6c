# The targets that `sam build` asks for, build-NAME for each function of
# template.yaml: NAME without its capitals is a directory of functions/. SAM says
# by ARTIFACTS_DIR where the program goes.
build-%:
	$(CLOUD) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/$(shell tr A-Z a-z <<< $*)
